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

// read returns the objects of a page and the position of the next page, which is nil at the end.
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
		// A page with fewer records than requested, although another page follows, has reached the
		// maximum size of a page in bytes.
		full := len(objects) >= wanted || !r.selects() && len(page.Records) < room
		if page.Next == nil || !r.all && full {
			return objects, page.Next, nil
		}
		r.query.After = page.Next
	}
}

// page returns the next page of the store, and those of its records that the labels select, at most
// room. With labels, page reads maxPage records, because labels usually select few of them. If more
// than room records are selected, page reads a shorter page again, because a position can only be
// the end of a page.
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

// selected returns the records that the labels select. If they select more than room records,
// selected is nil, and last is the number of records before the selected record that exceeds room.
// Otherwise last is -1.
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
