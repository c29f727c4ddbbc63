package sqlplan

import (
	"fmt"
	"hash/maphash"
	"math"
	"strconv"
	"strings"
)

// maxListSize returns the maximum number of rids in the list of a predicate for a branch by that
// list. It is greater than Limits.MaxList in an exact total, whose scan does not end after a page. It
// is lower in two cases in which a scan is cheaper than a long list: if a scan in the order of a
// parameter can use the list for a semi-join, and all other conditions are facets, and if a scan in the
// order of creation finds a page soon.
func (p *planner) maxListSize(predicate int) int {
	if p.limit == "ALL" {
		return p.index.Limits.MaxSemiJoinList
	}
	maxSize := p.index.Limits.MaxList
	if byParam(p.order) && p.predicates[predicate].path.allowsSemiJoin() && p.firstSuffices() {
		maxSize = p.index.Limits.MaxRankedList
	}
	if first := p.predicates[0].path; p.page > 0 && p.order.ByCreation() && p.firstSuffices() {
		page := p.page
		if p.hasAccessFilter(p.typeName) {
			page *= readPerVisible
		}
		ratio := scanListRatio
		if first.scansSignatures {
			ratio = signatureListRatio
		}
		maxSize = min(maxSize, maxListSizeFor(p.scanLength(first), page, ratio))
	}
	return maxSize
}

// readPerVisible is the assumed number of matches that a scan reads for each match that privacy rules
// do not hide. If the rules hide more, the scan of a page takes longer than the list would.
const readPerVisible = 4

// scanListRatio is the number of index entries that a scan reads in the time that a branch by list
// needs for one rid. A scan is faster, because it neither keeps nor sorts the entries.
const scanListRatio = 7.0

// signatureListRatio is the number of signatures that a scan tests in the time that a branch by list
// needs for one rid.
const signatureListRatio = 4.0

// scanLength returns the number of index entries or signatures that the whole scan of a path reads. It
// returns infinity if the path has no such scan, or if the number is not known.
func (p *planner) scanLength(path *accessPath) float64 {
	switch {
	case path.scansSignatures:
		return p.index.Database.RecordCount(p.ctx, p.typeName)
	case path.scannedKey != 0:
		return p.index.Database.EntryCount(p.ctx, path.scannedKey)
	default:
		return math.Inf(1)
	}
}

// maxListSizeFor returns the length of a list at which a branch by list takes as long as a scan of a
// parameter's index entries. entries is the number of these entries, page the number of records on
// a page. The scan must read entries/length × page entries to find a page. It reads ratio entries in
// the time that a branch by list needs for one rid.
func maxListSizeFor(entries float64, page int, ratio float64) int {
	return int(min(math.Sqrt(float64(page)*entries/ratio), math.MaxInt32))
}

// firstSuffices reports whether all predicates but the first are facets. Range scans and scans of
// signatures test facets (facetsOf) themselves, so they then find few records that do not match, apart
// from the access filter. There must be a predicate.
func (p *planner) firstSuffices() bool {
	for _, part := range p.predicates[1:] {
		if part.path == nil || part.path.sizeClass != classFacet {
			return false
		}
	}
	return true
}

// materializedList is a CTE with the rids of a list as one array. With a row for each rid instead,
// counting the rows would take as long again as reading the list.
type materializedList struct {
	table string
	// limit is the SQL of the length that the array has if the list is too long. It is empty if the
	// list is never too long.
	limit string
}

func (t materializedList) size() string { return "(SELECT cardinality(rids) FROM " + t.table + ")" }

// semiJoinRatio is the maximum number of rids of a list that a semi-join reads per candidate. If
// the list is longer, each candidate is tested instead. The test of a candidate takes the time of
// reading three rids.
const semiJoinRatio = 3

// semiJoinLimit returns the SQL of the length at which a list is too long for a semi-join that tests the
// rids of t. most is that length if t itself is too long, because another branch then tests more rids.
func (t materializedList) semiJoinLimit(most string) string {
	length := "LEAST(" + most + ", " + t.size() + " * " + strconv.Itoa(semiJoinRatio) + ")"
	if t.limit == "" {
		return length
	}
	return "CASE WHEN " + t.size() + " < " + t.limit + " THEN " + length + " ELSE " + most + " END"
}

// materialize adds a CTE of up to maxSize+1 rids of a path's list to the statement, or of all rids if
// the list is always short. If the list is in the cache of long lists, it adds nothing and returns
// false for tried.
func (p *planner) materialize(path *accessPath, maxSize int) (t materializedList, tried bool, err error) {
	before := p.checkpoint()
	rids, err := path.list()
	if err != nil {
		return materializedList{}, false, err
	}
	t.table = p.name("few")
	if !path.isShort {
		if p.skipsLongLists {
			id := longListKey(rids, p.Args[before.args:], maxSize)
			if path.listKey != "" {
				id = longListKey(path.listKey, nil, maxSize)
			}
			if slow, known := p.index.Database.LongList(id); known {
				p.skippedLists, p.knownSlow = append(p.skippedLists, id), p.knownSlow || slow
				p.restore(before)
				return materializedList{}, false, nil
			}
			p.triedLists = append(p.triedLists, id)
		}
		t.limit = p.Arg(maxSize + 1)
		rids = "SELECT rid FROM (" + rids + ") l LIMIT " + t.limit
	}
	p.with = append(p.with, t.table+" AS MATERIALIZED (SELECT COALESCE(array_agg(rid), '{}') AS rids FROM ("+rids+") l)")
	return t, true, nil
}

// ifTooLong returns the branch of a partial page that returns one row if the list is too long: NULL in
// all columns.
func (p *planner) ifTooLong(list materializedList) string {
	n := strings.Count(p.index.Columns, ",") + 2
	if !p.order.ByCreation() {
		n += 3 * len(p.order)
	}
	return "(SELECT NULL" + strings.Repeat(", NULL", n-1) + " WHERE " + list.size() + " >= " + list.limit + ")"
}

var longListSeed = maphash.MakeSeed()

// longListKey returns the key of a list in the cache of long lists: a hash of its SQL, its
// arguments and its maximum size.
func longListKey(from string, args []any, maxSize int) uint64 {
	var hash maphash.Hash
	hash.SetSeed(longListSeed)
	_, _ = fmt.Fprint(&hash, maxSize, from, args) // cannot fail
	return hash.Sum64()
}

// byList returns the branch that reads the records of a materialized list. At run time, the branch
// returns no rows if the list is too long or if a guard is false. ensured is as in tests.
func (p *planner) byList(list materializedList, guards []string, ensured int) (string, error) {
	where := append([]string{}, guards...)
	if list.limit != "" {
		where = append(where, "cardinality(rids) < "+list.limit)
	}
	driver := "SELECT DISTINCT rid FROM (SELECT unnest(rids) AS rid FROM " + list.table + whereAll(where) + ") l" + whereAll(p.afterRid("rid")) +
		" ORDER BY rid " + p.direction()
	return p.fromRids(driver, ensured, &list)
}
