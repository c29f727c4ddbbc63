package cluster

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/btree"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// freeTotal is how many matches are counted for a total that nobody insisted on.
const freeTotal = 1000

// searchPosition is the last record of a page, in the terms of the page's order.
type searchPosition struct {
	Sort store.Sort `json:"s"`
	// Millis is the time that the order is by; 0 when it is by id.
	Millis int64  `json:"t,omitempty"`
	ID     string `json:"id"`
}

// Search implements store.Store.
func (s *Site) Search(_ context.Context, query store.Query) (store.Page, error) {
	if !s.engine.isSynced() {
		return store.Page{}, store.ErrNotReady
	}
	var after *entry
	if query.After != nil {
		var err error
		if after, err = parsePosition(query); err != nil {
			return store.Page{}, err
		}
	}
	s.index.mu.RLock()
	defer s.index.mu.RUnlock()
	t := s.index.types[query.Type]
	if t == nil {
		return store.Page{Total: total(query, 0, true)}, nil
	}
	page, err := collect(query, t.candidates(query, s.index, after), after)
	if err == nil && after != nil && query.Total == store.TotalAccurate {
		page.Total = 0
		for e := range t.candidates(query, s.index, nil) {
			if matches(query, e) {
				page.Total++
			}
		}
	}
	return page, err
}

func parsePosition(query store.Query) (*entry, error) {
	var position searchPosition
	if err := json.Unmarshal(query.After, &position); err != nil || position.Sort != query.Sort {
		return nil, store.ErrBadPosition
	}
	at := recordsv1.Record{}
	at.Spec.Created.Time = time.UnixMilli(position.Millis)
	at.Spec.Updated = at.Spec.Created
	return &entry{obj: &at, id: position.ID}, nil
}

func positionOf(sort store.Sort, e *entry) (store.Position, error) {
	position := searchPosition{Sort: sort, ID: e.id}
	switch sort.Field {
	case store.SortCreated:
		position.Millis = e.obj.Spec.Created.UnixMilli()
	case store.SortUpdated:
		position.Millis = e.obj.Spec.Updated.UnixMilli()
	case store.SortID:
	}
	return json.Marshal(position)
}

// candidates yields, in the query's order, the records behind a position that
// the query's cheapest condition leaves.
func (t *typeIndex) candidates(query store.Query, x *index, after *entry) func(yield func(*entry) bool) {
	tree, less := t.created, byCreated
	switch query.Sort.Field {
	case store.SortUpdated:
		tree, less = t.updated, byUpdated
	case store.SortID:
		tree, less = t.id, byID
	case store.SortCreated:
	}
	if query.Sort.Descending {
		ascending := less
		less = func(a, b *entry) bool { return ascending(b, a) }
	}
	var chosen []*entry
	switch {
	case query.IDs != nil:
		chosen = x.withIDs(query.Type, query.IDs)
	case query.Tokens != nil:
		chosen = t.tokens.fewest(query.Tokens)
	default:
		return walk(tree, query.Sort.Descending, after, less)
	}
	slices.SortFunc(chosen, func(a, b *entry) int {
		if less(a, b) {
			return -1
		}
		return 1
	})
	return func(yield func(*entry) bool) {
		for _, e := range chosen {
			if (after == nil || less(after, e)) && !yield(e) {
				return
			}
		}
	}
}

func walk(tree *btree.BTreeG[*entry], descending bool, after *entry, less func(a, b *entry) bool) func(yield func(*entry) bool) {
	return func(yield func(*entry) bool) {
		step := func(e *entry) bool {
			if after != nil && !less(after, e) {
				return true
			}
			return yield(e)
		}
		switch {
		case after == nil && descending:
			tree.Reverse(step)
		case after == nil:
			tree.Scan(step)
		case descending:
			tree.Descend(after, step)
		default:
			tree.Ascend(after, step)
		}
	}
}

// withIDs returns the visible records of a type with one of the ids, each once.
func (x *index) withIDs(recordType string, ids []string) []*entry {
	var found []*entry
	for _, id := range ids {
		e := x.names[recordName(store.Key{Type: recordType, ID: id})]
		if e != nil && e.visible() && e.id == strings.ToLower(id) && !slices.Contains(found, e) {
			found = append(found, e)
		}
	}
	return found
}

// collect takes a page off the candidates and counts on as far as the query's
// total wants it.
func collect(query store.Query, candidates func(yield func(*entry) bool), after *entry) (store.Page, error) {
	var page store.Page
	var last *entry
	matched, ended := int64(0), true
	for e := range candidates {
		if !matches(query, e) {
			continue
		}
		if len(page.Records) < query.Count {
			page.Records = append(page.Records, toRecord(e.obj))
			last = e
		} else if !countOn(query, matched, after) {
			matched, ended = matched+1, false
			break
		}
		matched++
	}
	var err error
	if last != nil && matched > int64(len(page.Records)) {
		page.Next, err = positionOf(query.Sort, last)
	}
	page.Total = store.UnknownTotal
	if after == nil {
		page.Total = total(query, matched, ended)
	}
	return page, err
}

func matches(query store.Query, e *entry) bool {
	for _, anyOf := range query.Updated {
		if !slices.ContainsFunc(anyOf, func(r store.TimeRange) bool { return r.Contains(e.obj.Spec.Updated.Time) }) {
			return false
		}
	}
	for _, condition := range query.Tokens {
		if !e.hasToken(condition) {
			return false
		}
	}
	return true
}

// countOn decides whether to count more matches once the page is full.
func countOn(query store.Query, matched int64, after *entry) bool {
	switch query.Total {
	case store.TotalAccurate:
		return after == nil
	case store.TotalNone:
		return false
	default:
		return after == nil && matched < freeTotal
	}
}

func total(query store.Query, matched int64, ended bool) int64 {
	if query.Total == store.TotalNone || !ended {
		return store.UnknownTotal
	}
	return matched
}
