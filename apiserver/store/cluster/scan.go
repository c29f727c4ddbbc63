package cluster

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/tidwall/btree"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
)

// candidates returns a superset of the records that match a filter, each once, and the function
// that reports whether one of them matches.
func (t *typeIndex) candidates(f filter, w *queryBudget) (entries iter.Seq[*indexedRecord], check func(*indexedRecord) bool) {
	if !t.isSelective(f) {
		return t.created.Scan, f.matches
	}
	return slices.Values(f.sortedCandidates(w)), f.recheckOrAll()
}

// isSelective reports whether a filter has at most half as many candidates as the type has records.
// Then testing the candidates is cheaper than a full scan.
func (t *typeIndex) isSelective(f filter) bool {
	return f.candidates != nil && f.maxCandidates <= t.created.Len()/2
}

// sortedCandidates returns the candidates of a filter, each once, in the order of creation. It returns
// none if the query must end.
func (f filter) sortedCandidates(w *queryBudget) []*indexedRecord {
	list := f.candidates()
	if f.sorted {
		return list
	}
	if w.exceededBy(len(list)) {
		return nil
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *indexedRecord) int {
		if a.created != b.created {
			return cmp.Compare(a.created, b.created)
		}
		return cmp.Compare(a.id, b.id)
	})
	return slices.Compact(list)
}

func (f filter) recheckOrAll() func(*indexedRecord) bool {
	if f.recheck == nil {
		return everything.matches
	}
	return f.recheck
}

// orderedScan yields the matching records in the order of a query.
type orderedScan struct {
	entries iter.Seq[*indexedRecord]
	// length is the number of matches on all pages, or -1 if it is unknown.
	length int64
	// limit ends entries.
	limit *scanLimit
}

// planOrderedScan returns a scan of the records after a place, or of all if after is nil. It
// returns false if sorting the candidates is cheaper.
func (t *typeIndex) planOrderedScan(o order.Order, f filter, after *order.Place, budget *queryBudget) (orderedScan, bool) {
	r, check := orderedScan{length: -1}, f.matches
	if f.candidates == nil {
		r.length = t.byLabels.visible(f, t.created.Len())
	}
	s := f.rangeFor(o[0])
	switch {
	case s != nil && (!t.isSelective(f) || f.maxCandidates == s.length):
		r.length = t.byLabels.visible(f, s.length)
		if f.recheck == nil || f.labels != nil {
			check = f.recheckOrAll()
		}
	case t.isSelective(f) && o.ByCreation():
		list := f.sortedCandidates(budget)
		r.length, r.limit = t.byLabels.visible(f, len(list)), &scanLimit{budget, math.MaxInt}
		r.entries = r.limit.matches(scanList(list, o[0].Descending, asPivot(after)), f.recheckOrAll())
		return r, true
	case t.isSelective(f):
		return r, false
	default:
		s = nil
	}
	tests := math.MaxInt
	if r.length < 0 && isByParam(o[0]) {
		tests = t.created.Len() / 4
	}
	r.limit = &scanLimit{budget, tests}
	r.entries = t.scanOrder(o, s, after, r.limit, check)
	return r, true
}

// scanLimit ends a scan after a number of tested values. In the order of a parameter, a record with
// several values is met several times, and each time its values are compared. So once a quarter as many
// values as there are records have been tested, testing each record once, and sorting the matches, is
// cheaper than a scan to the end.
type scanLimit struct {
	budget *queryBudget
	// left is the number of values that may still be tested.
	left int
}

// isReached reports whether the scan ended before it had met all records.
func (l *scanLimit) isReached() bool { return l.left < 0 || l.budget.over }

// matches yields the records that pass a test, until the limit is reached.
func (l *scanLimit) matches(entries iter.Seq[*indexedRecord], check func(*indexedRecord) bool) iter.Seq[*indexedRecord] {
	return func(yield func(*indexedRecord) bool) {
		for e := range entries {
			if l.left--; l.left < 0 || l.budget.exceeded() || check(e) && !yield(e) {
				return
			}
		}
	}
}

// scanOrder yields the records after a place that pass a test, in an order. If s is not nil, it scans
// only the records in that value range, whose value is the first key of the order.
func (t *typeIndex) scanOrder(o order.Order, s *valueRange, after *order.Place, limit *scanLimit, check func(*indexedRecord) bool) iter.Seq[*indexedRecord] {
	if len(o) == 1 {
		return limit.matches(t.scanKey(o[0], s, after, limit.budget), check)
	}
	return t.scanKeys(o, s, after, limit, check)
}

func isByParam(part store.Sort) bool {
	return part.Field == store.SortText || part.Field == store.SortPeriod
}

// scanKey scans all records, or those of a value range, in the order of one key.
func (t *typeIndex) scanKey(part store.Sort, s *valueRange, after *order.Place, w *queryBudget) iter.Seq[*indexedRecord] {
	switch {
	case s != nil:
		return t.scanValueRange(s, part, after)
	case isByParam(part):
		return t.scanParam(part, after, w)
	}
	switch part.Field {
	case store.SortUpdated:
		return scanTree(t.updated, part.Descending, asPivot(after))
	case store.SortID:
		return scanTree(t.id, part.Descending, asPivot(after))
	default:
		return scanTree(t.created, part.Descending, asPivot(after))
	}
}

// scanKeys is scanOrder for several keys. It scans by the first key, and sorts each group of records with
// the same first rank by the other keys.
func (t *typeIndex) scanKeys(o order.Order, s *valueRange, after *order.Place, limit *scanLimit, check func(*indexedRecord) bool) iter.Seq[*indexedRecord] {
	from := after
	if after != nil {
		from = &order.Place{Ranks: after.Ranks[:1], Created: math.MinInt64, ID: after.ID}
		if o[0].Descending {
			from.Created = math.MaxInt64
		}
	}
	return func(yield func(*indexedRecord) bool) {
		var group []ranked
		flush := func() bool {
			slices.SortFunc(group, func(a, b ranked) int { return o.Compare(&a.Place, &b.Place) })
			for _, at := range group {
				if (after == nil || o.Compare(after, &at.Place) < 0) && !yield(at.record) {
					return false
				}
			}
			group = group[:0]
			return true
		}
		for e := range limit.matches(t.scanKey(o[0], s, from, limit.budget), check) {
			at := rank(o, e, nil)
			if len(group) > 0 && at.Ranks[0] != group[0].Ranks[0] && !flush() {
				return
			}
			group = append(group, at)
		}
		if !limit.isReached() {
			flush()
		}
	}
}

// asPivot returns a pivot for the trees: a record at the place, which is in no index. It returns
// nil for nil.
func asPivot(at *order.Place) *indexedRecord {
	if at == nil {
		return nil
	}
	return &indexedRecord{id: at.ID, created: at.Created, updated: at.Ranks[0].Number}
}

// scanList scans a list that is in the order of creation, from the record after at. If at is nil,
// it scans the whole list.
func scanList(list []*indexedRecord, descending bool, at *indexedRecord) iter.Seq[*indexedRecord] {
	from, until := 0, len(list)
	if at != nil {
		from = searchList(list, at)
		if descending {
			from, until = 0, from
		} else if from < len(list) && !byCreated(at, list[from]) {
			from++
		}
	}
	rest := list[from:until]
	if !descending {
		return slices.Values(rest)
	}
	return func(yield func(*indexedRecord) bool) {
		for _, e := range slices.Backward(rest) {
			if !yield(e) {
				return
			}
		}
	}
}

// scanTree scans the items of a tree after an item. If after is zero, it scans the whole tree.
func scanTree[T comparable](tree *btree.BTreeG[T], descending bool, after T) iter.Seq[T] {
	return func(yield func(T) bool) {
		var none T
		step := func(item T) bool {
			if after != none && !tree.Less(after, item) && !tree.Less(item, after) {
				return true
			}
			return yield(item)
		}
		switch {
		case after == none && descending:
			tree.Reverse(step)
		case after == none:
			tree.Scan(step)
		case descending:
			tree.Descend(after, step)
		default:
			tree.Ascend(after, step)
		}
	}
}

// scanParam scans the records by their values of a parameter, and then those without a value.
func (t *typeIndex) scanParam(part store.Sort, after *order.Place, w *queryBudget) iter.Seq[*indexedRecord] {
	return func(yield func(*indexedRecord) bool) {
		if after == nil || !after.Ranks[0].Missing {
			if !t.scanValues(part, after, w, yield) {
				return
			}
			after = nil
		}
		for e := range scanTree(t.created, part.Descending, asPivot(after)) {
			if w.exceeded() || e.rank(part).Missing && !yield(e) {
				return
			}
		}
	}
}

// scanValues yields the records with a value of a parameter, in the order of these values. A record
// with several values has the place of the one that sorts first. It returns false if yield does, or if the
// query must end.
func (t *typeIndex) scanValues(part store.Sort, after *order.Place, w *queryBudget, yield func(*indexedRecord) bool) bool {
	var text textPosting
	period := asPeriodPivot(after)
	if after != nil {
		text = textPosting{after.Ranks[0].Text, asPivot(after)}
	}
	if part.Field == store.SortText {
		return scanFirstValues(t.postings.texts[part.Param], part, text, w, yield, func(at textPosting) (*indexedRecord, order.Rank) {
			return at.e, order.Rank{Text: at.text}
		})
	}
	return scanFirstValues(t.postings.periods[part.Param], part, period, w, yield, func(at periodPosting) (*indexedRecord, order.Rank) {
		return at.e, order.Rank{Number: at.from}
	})
}

// asPeriodPivot returns a pivot for the trees of periods: a posting at the place. It returns the
// zero posting for nil.
func asPeriodPivot(at *order.Place) periodPosting {
	if at == nil {
		return periodPosting{}
	}
	return periodPosting{at.Ranks[0].Number, asPivot(at)}
}

// scanFirstValues scans the values after the value after, or all values if after is zero. It yields the
// record of a value if the record is ranked by that value. It returns false if yield does, or if the query
// must end. of returns the record and the rank of a value.
func scanFirstValues[T comparable](values *btree.BTreeG[T], part store.Sort, after T, w *queryBudget, yield func(*indexedRecord) bool, of func(T) (*indexedRecord, order.Rank)) bool {
	if values == nil {
		return true
	}
	for value := range scanTree(values, part.Descending, after) {
		if e, at := of(value); w.exceeded() || e.rank(part) == at && !yield(e) {
			return false
		}
	}
	return true
}
