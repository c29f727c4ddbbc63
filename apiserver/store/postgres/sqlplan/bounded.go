package sqlplan

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/store"
)

// maxBatchedEntries is the largest number of index entries of a parameter whose scan is batched with
// other queries. Two million take some 200 ms. A scan that was slow in a batch is marked in the cache
// of long lists, and is not batched as long as its list is in the cache.
const maxBatchedEntries = 2_000_000

// maxBatchedScan returns the greatest length (scanLength) of a path's scan that is batched.
func maxBatchedScan(path *accessPath) float64 {
	if path.scansSignatures {
		return maxBatchedEntries * signatureListRatio / scanListRatio
	}
	return maxBatchedEntries
}

// isBounded reports whether the cost of a page likely does not depend on the number of records of the
// site. This is so if each index entry that the scan reads is a match. It is assumed for a scan that
// is at most as long as maxBatchedScan and was not slow before. It is never so if the query has an
// access filter.
func (p *planner) isBounded() bool {
	if p.hasAccessFilter(p.typeName) {
		return false
	}
	if p.isTimeRange() {
		return p.order[0].Field == store.SortUpdated && len(p.order) == 1 || p.order.ByCreation() && !p.knownSlow
	}
	if !p.order.ByCreation() {
		return false
	}
	if len(p.predicates) == 0 {
		return true
	}
	if p.scansMatches() {
		return true
	}
	first := p.predicates[0].path
	return len(p.triedLists) == 0 && !p.knownSlow && p.pathCount > 0 && p.firstSuffices() && p.scanLength(first) <= maxBatchedScan(first)
}

// scansMatches reports whether each index entry that a scan in the order of creation reads meets all
// conditions. The access filter is not one of them.
func (p *planner) scansMatches() bool {
	if len(p.predicates) != 1 || p.pathCount != 1 {
		return false
	}
	path := p.predicates[0].path
	return path.isOrdered && path.isExact
}

// isTimeRange reports whether all conditions are on the time of update. It is true if there are none.
func (p *planner) isTimeRange() bool {
	return !slices.ContainsFunc(p.predicates, func(part predicate) bool {
		_, is := part.condition.(store.UpdatedIn)
		return !is
	})
}
