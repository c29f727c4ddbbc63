package cluster

import (
	"context"
	"iter"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
)

// freeTotal is how many matches are counted for a total that nobody insisted on.
const freeTotal = 1000

// Search implements store.Store.
func (s *Site) Search(ctx context.Context, query store.Query) (store.Page, error) {
	if !s.engine.isSynced() {
		return store.Page{}, store.ErrNotReady
	}
	o := order.Of(query)
	after, err := o.Parse(query.After)
	if err != nil {
		return store.Page{}, err
	}
	if query.ByTime() {
		if query, err = s.settle(ctx, query); err != nil {
			return store.Page{}, err
		}
	}
	s.index.mu.RLock()
	defer s.index.mu.RUnlock()
	c := &compiler{
		index: s.index, bases: query.Bases, access: query.Access,
		visible: map[string]filter{}, work: newWork(ctx, s.engine.queryTimeout),
	}
	sources := make([]source, 0, len(query.Types))
	for _, typeName := range query.Types {
		f, err := c.restricted(typeName, query.WhereOf(typeName))
		if err != nil {
			return store.Page{}, err
		}
		if t := s.index.types[typeName]; t != nil {
			sources = append(sources, source{t, f})
		}
	}
	found, err := c.page(query, o, after, sources)
	if err != nil {
		return store.Page{}, err
	}
	page := store.Page{Total: found.total}
	for _, at := range found.places {
		page.Records = append(page.Records, toRecord(at.entry.obj))
	}
	if found.more && len(found.places) > 0 {
		page.Next = o.Position(&found.places[len(found.places)-1].Place)
	}
	err = c.include(query, found.places, &page)
	return page, err
}

// settle restricts a query to records that no open write comes before.
func (s *Site) settle(ctx context.Context, query store.Query) (store.Query, error) {
	var own time.Time
	if query.After == nil {
		own = s.index.open.acknowledged()
	}
	until, err := s.settled(ctx, own)
	return query.Before(until), err
}

// source is the entries of a type, and which of them match.
type source struct {
	types  *typeIndex
	filter filter
}

// found is what is on a page, whether there is more, and how many match.
type found struct {
	places []ranked
	more   bool
	total  int64
}

func (c *compiler) page(query store.Query, o order.Order, after *order.Place, sources []source) (found, error) {
	var page found
	counted := query.Total == store.TotalAccurate || after == nil && query.Total == store.TotalWhenFree
	if len(sources) == 1 {
		if r, ok := sources[0].types.inOrder(o, sources[0].filter, after); ok {
			page = c.stream(query, o, r, counted && (after == nil || r.length >= 0))
			if counted && page.total == store.UnknownTotal && query.Total == store.TotalAccurate {
				page.total = c.count(sources)
			}
			return page.limited(query), c.work.err()
		}
	}
	page = c.gather(query, o, after, sources)
	if !counted {
		page.total = store.UnknownTotal
	}
	return page.limited(query), c.work.err()
}

// limited hides a total that is known but that no engine has to find out, so that
// what is told depends on the query alone.
func (f found) limited(query store.Query) found {
	atEnd := !f.more && (len(f.places) > 0 || query.Skip == 0)
	if !atEnd && query.Total == store.TotalWhenFree && f.total > freeTotal {
		f.total = store.UnknownTotal
	}
	return f
}

// stream takes a page off entries that come in order, and counts on as far as the
// query's total wants it.
func (c *compiler) stream(query store.Query, o order.Order, r run, counted bool) found {
	page := found{total: store.UnknownTotal}
	if counted {
		page.total = r.length
	}
	counted = counted && r.length < 0
	matched, ended := int64(0), true
	skip := int64(query.Skip)
	for e := range r.entries {
		if c.work.done() {
			break
		}
		if !r.check(e) {
			continue
		}
		if matched++; matched <= skip {
			continue
		}
		if len(page.places) < query.Count {
			page.places = append(page.places, rank(o, e, nil))
			continue
		}
		page.more = true
		if !counted || query.Total == store.TotalWhenFree && matched > freeTotal {
			ended = false
			break
		}
	}
	if counted && ended {
		page.total = matched
	}
	return page
}

// gather takes a page off entries in no order.
func (c *compiler) gather(query store.Query, o order.Order, after *order.Place, sources []source) found {
	var page found
	// No more can be skipped than there are.
	skip := min(query.Skip, len(c.index.names))
	first := firsts{order: o, n: skip + query.Count + 1}
	memory := make([]order.Rank, len(o))
	for _, s := range sources {
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

func (c *compiler) count(sources []source) int64 {
	var n int64
	for _, s := range sources {
		for range c.matching(s) {
			n++
		}
	}
	return n
}

// matching yields the entries that match, in no order.
func (c *compiler) matching(s source) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		candidates, check := s.types.candidates(s.filter)
		for e := range candidates {
			if c.work.done() || check(e) && !yield(e) {
				return
			}
		}
	}
}
