package cluster

import (
	"context"
	"iter"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
)

// maxFreeTotal is the maximum number of matches that a search counts for store.TotalWhenFree. A
// greater total is returned only on a last page without Query.After.
const maxFreeTotal = 1000

// Search implements store.Store.
func (s *Store) Search(ctx context.Context, query store.Query) (store.Page, error) {
	if !s.engine.isSynced() {
		return store.Page{}, store.ErrNotReady
	}
	o := order.Of(query)
	after, err := o.Parse(query.After)
	if err != nil {
		return store.Page{}, err
	}
	if after != nil && !after.InMillis() {
		return store.Page{}, store.ErrBadPosition
	}
	if query.Consistent {
		if err := s.Synchronize(ctx); err != nil {
			return store.Page{}, err
		}
	}
	if query.ByTime() {
		if query, err = s.beforeWatermark(ctx, query); err != nil {
			return store.Page{}, err
		}
	}
	return s.index.search(query, o, after, newQueryBudget(ctx, s.engine.queryTimeout))
}

// search returns the page of a query after a place.
func (x *index) search(query store.Query, o order.Order, after *order.Place, budget *queryBudget) (store.Page, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	c := &compiler{index: x, bases: query.Bases, access: query.Access, accessFilters: map[string]filter{}, budget: budget}
	scans := make([]typeScan, 0, len(query.Types))
	for _, typeName := range query.Types {
		f, err := c.compileVisible(typeName, query.WhereOf(typeName))
		if err != nil {
			return store.Page{}, err
		}
		if t := x.types[typeName]; t != nil {
			scans = append(scans, typeScan{t, f})
		}
	}
	found, err := c.page(query, o, after, scans)
	if err != nil {
		return store.Page{}, err
	}
	page := store.Page{Total: found.total}
	for _, at := range found.places {
		page.Records = append(page.Records, toRecord(at.record.obj))
	}
	if found.more && len(found.places) > 0 {
		page.Next = o.Position(&found.places[len(found.places)-1].Place)
	}
	err = c.include(query, found.places, &page)
	return page, err
}

// beforeWatermark restricts a query to records updated before the watermark.
func (s *Store) beforeWatermark(ctx context.Context, query store.Query) (store.Query, error) {
	var own time.Time
	if query.After == nil {
		own = s.index.open.acknowledged()
	}
	until, err := s.watermark(ctx, own)
	return query.Before(until), err
}

// typeScan is the index of a type and the filter of its records.
type typeScan struct {
	types  *typeIndex
	filter filter
}

// found is a page: its records, whether there are more, and the number of all matches.
type found struct {
	places []ranked
	more   bool
	total  int64
}

func (c *compiler) page(query store.Query, o order.Order, after *order.Place, scans []typeScan) (found, error) {
	var page found
	counted := query.Total == store.TotalAccurate || after == nil && query.Total == store.TotalWhenFree
	if len(scans) == 1 {
		if r, ok := scans[0].types.planOrderedScan(o, scans[0].filter, after, c.budget); ok {
			page = c.scanPage(query, o, r, counted && (after == nil || r.length >= 0))
			isCut := r.limit.isReached()
			if counted && page.total == store.UnknownTotal && (query.Total == store.TotalAccurate || isCut && page.more) {
				page.total = c.count(scans)
			}
			if page.more || !isCut {
				return page.hideCostlyTotal(query), c.budget.err()
			}
		}
	}
	page = c.sortPage(query, o, after, scans)
	if !counted {
		page.total = store.UnknownTotal
	}
	return page.hideCostlyTotal(query), c.budget.err()
}

// hideCostlyTotal hides a total above maxFreeTotal that is known without counting, except on the
// last page. So it does not depend on the access path whether a page has a total.
func (f found) hideCostlyTotal(query store.Query) found {
	atEnd := !f.more && (len(f.places) > 0 || query.Skip == 0)
	if !atEnd && query.Total == store.TotalWhenFree && f.total > maxFreeTotal {
		f.total = store.UnknownTotal
	}
	return f
}

// scanPage returns a page of records that are scanned in the order of the query. If counted is
// true, it scans beyond the page to count the matches, for store.TotalWhenFree up to maxFreeTotal. If
// the limit of the scan is reached, records may be missing and the total is unknown.
func (c *compiler) scanPage(query store.Query, o order.Order, r orderedScan, counted bool) found {
	page := found{total: store.UnknownTotal}
	if counted {
		page.total = r.length
	}
	counted = counted && r.length < 0
	matched, ended := int64(0), true
	skip := int64(query.Skip)
	for e := range r.entries {
		if matched++; matched <= skip {
			continue
		}
		if len(page.places) < query.Count {
			page.places = append(page.places, rank(o, e, nil))
			continue
		}
		page.more = true
		if !counted || query.Total == store.TotalWhenFree && matched > maxFreeTotal {
			ended = false
			break
		}
	}
	if counted && ended && !r.limit.isReached() {
		page.total = matched
	}
	return page
}

// sortPage scans the matches in any order, and returns a page of them in the order of the query.
func (c *compiler) sortPage(query store.Query, o order.Order, after *order.Place, scans []typeScan) found {
	var page found
	// A larger Skip than the number of records has the same result, but would need more memory.
	skip := min(query.Skip, len(c.index.names))
	first := topN{order: o, n: skip + query.Count + 1}
	memory := make([]order.Rank, len(o))
	for _, s := range scans {
		for e := range c.matching(s) {
			page.total++
			if at := rank(o, e, memory); after == nil || o.Compare(after, &at.Place) < 0 {
				first.add(at)
			}
		}
	}
	first.cut()
	page.places = first.kept[min(skip, len(first.kept)):]
	if page.more = len(page.places) > query.Count; page.more {
		page.places = page.places[:query.Count]
	}
	return page
}

func (c *compiler) count(scans []typeScan) int64 {
	var n int64
	for _, s := range scans {
		for range c.matching(s) {
			n++
		}
	}
	return n
}

// matching yields the records that match, in any order.
func (c *compiler) matching(s typeScan) iter.Seq[*indexedRecord] {
	return func(yield func(*indexedRecord) bool) {
		candidates, check := s.types.candidates(s.filter, c.budget)
		for e := range candidates {
			if c.budget.exceeded() || check(e) && !yield(e) {
				return
			}
		}
	}
}
