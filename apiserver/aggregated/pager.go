package aggregated

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/paddock-health/paddock/apiserver/store"
)

// pager reads the objects of one list request.
type pager struct {
	*resource
	records store.Restricted
	query   store.Query
	// labels select records. Nil selects all.
	labels labels.Selector
	// all makes the page unlimited. Otherwise it has up to query.Count objects.
	all bool
}

// read returns the objects of a page and the position of the next one, which is nil at the end.
func (r *pager) read(ctx context.Context) ([]runtime.Object, store.Position, error) {
	var objects []runtime.Object
	wanted := r.query.Count
	for {
		room := maxPage
		if !r.all {
			room = wanted - len(objects)
		}
		page, selected, err := r.page(ctx, room)
		if err != nil {
			return nil, nil, err
		}
		for _, record := range selected {
			object, err := r.object(ctx, r.records, record)
			if err != nil {
				return nil, nil, err
			}
			objects = append(objects, object)
		}
		// A short page with a next one has reached the maximum of bytes of a page.
		full := len(objects) >= wanted || !r.selects() && len(page.Records) < room
		if page.Next == nil || !r.all && full {
			return objects, page.Next, nil
		}
		r.query.After = page.Next
	}
}

// page returns the next page of the store, of which at most room records are selected, and these
// records. Labels usually select few records, so it reads a page of maxPage. If more than room are
// selected, it reads a shorter page again, because a position can only be the end of a page.
func (r *pager) page(ctx context.Context, room int) (store.Page, []store.Record, error) {
	query := r.query
	query.Count = room
	if r.selects() {
		query.Count = maxPage
	}
	for {
		page, err := r.records.Search(ctx, query)
		if err != nil {
			return store.Page{}, nil, err
		}
		selected, last := r.selected(ctx, page.Records, room)
		if last < 0 {
			return page, selected, nil
		}
		query.Count = last
	}
}

func (r *pager) selects() bool { return r.labels != nil && !r.labels.Empty() }

// selected returns the records that the labels select. If there are more than room, last is the
// number of records that have room selected ones. Otherwise it is -1.
func (r *pager) selected(ctx context.Context, records []store.Record, room int) (selected []store.Record, last int) {
	if !r.selects() {
		return records, -1
	}
	for i, record := range records {
		if !r.labels.Matches(labels.Set(keptOf(ctx, record).Labels)) {
			continue
		}
		if len(selected) == room {
			return nil, i
		}
		selected = append(selected, record)
	}
	return selected, -1
}
