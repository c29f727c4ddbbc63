package aggregated

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/paddock-health/paddock/apiserver/store"
)

// reading is a list on its way.
type reading struct {
	*resource
	records store.Store
	query   store.Query
	// labels select among the records; nil selects all.
	labels labels.Selector
	// all reads on to the end; else up to the query's count.
	all bool
}

// read reads the objects of a page and where the next one starts, nil at the end.
func (r *reading) read(ctx context.Context) ([]runtime.Object, store.Position, error) {
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
		// A page that is short although there are more has as many bytes as a page may have.
		full := len(objects) >= wanted || !r.selects() && len(page.Records) < room
		if page.Next == nil || !r.all && full {
			return objects, page.Next, nil
		}
		r.query.After = page.Next
	}
}

// page reads the next page of the store of which no more are selected than there is room
// for. Labels select few of many: so a page is as large as can be, and where more of it
// are selected, it is read again up to the last one that fits, as a position is where a
// page ended.
func (r *reading) page(ctx context.Context, room int) (store.Page, []store.Record, error) {
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
		selected, last, err := r.selected(page.Records, room)
		if err != nil || last < 0 {
			return page, selected, err
		}
		query.Count = last
	}
}

func (r *reading) selects() bool { return r.labels != nil && !r.labels.Empty() }

// selected are the records that the labels select. If that is more than there is room
// for, last is how many of the records to read for those that fit; else it is -1.
func (r *reading) selected(records []store.Record, room int) (selected []store.Record, last int, err error) {
	if !r.selects() {
		return records, -1, nil
	}
	for i, record := range records {
		beside, err := keptOf(record)
		if err != nil {
			return nil, 0, err
		}
		if !r.labels.Matches(labels.Set(beside.Labels)) {
			continue
		}
		if len(selected) == room {
			return nil, i, nil
		}
		selected = append(selected, record)
	}
	return selected, -1, nil
}
