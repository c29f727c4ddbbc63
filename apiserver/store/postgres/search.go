package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
)

// freeTotal is how many matches are counted for a total that nobody insisted on.
const freeTotal = 1000

// Search implements store.Store.
func (s *Site) Search(ctx context.Context, query store.Query) (store.Page, error) {
	o := orderOf(query)
	after, err := o.parse(query.After)
	if err != nil {
		return store.Page{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	r := &reader{site: s, ctx: ctx, query: query, order: o, after: after}
	page, err := r.search()
	if err != nil {
		return store.Page{}, searchError(err)
	}
	return page, nil
}

func searchError(err error) error {
	var ambiguous *store.AmbiguousError
	if errors.As(err, &ambiguous) {
		return err
	}
	if errors.Is(err, store.ErrQueryTimeout) {
		return err
	}
	if takesTooLong(err) {
		return errors.Join(store.ErrQueryTimeout, err)
	}
	return storeError("search", err)
}

// reader answers one query.
type reader struct {
	site    *Site
	ctx     context.Context
	query   store.Query
	order   order
	after   *place
	paths   []path
	answers answers
}

// mostConditions bounds the text of a statement.
const mostConditions = 5000

// sizeOf counts the conditions of a query.
func sizeOf(condition store.Condition) int {
	size := 1
	var parts []store.Condition
	switch condition := condition.(type) {
	case store.All:
		parts = condition
	case store.Any:
		groups, rest := gatherTokens(condition) // those of a group are one
		size, parts = size+len(groups), rest
	case store.Not:
		parts = []store.Condition{condition.Condition}
	case store.Chain:
		parts = []store.Condition{condition.Where}
	case store.ReferredBy:
		parts = []store.Condition{condition.Where}
	}
	for _, part := range parts {
		size += sizeOf(part)
	}
	return size
}

func (r *reader) search() (store.Page, error) {
	if n := sizeOf(r.query.Where); n > mostConditions {
		return store.Page{}, fmt.Errorf("%w: it has %d conditions, at most %d can be", store.ErrQueryTimeout, n, mostConditions)
	}
	r.query.Types = slices.Compact(slices.Sorted(slices.Values(r.query.Types)))
	if err := r.learnPaths(); err != nil {
		return store.Page{}, err
	}
	page := store.Page{Total: store.UnknownTotal}
	skip := int64(r.query.Skip)
	counted := r.query.Total == store.TotalAccurate || r.after == nil && r.query.Total == store.TotalWhenFree
	var places []place
	more := r.query.Count == 0
	if r.query.Count > 0 {
		var err error
		if places, err = r.places(); err != nil {
			return store.Page{}, err
		}
		if more = len(places) > r.query.Count; more {
			places = places[:r.query.Count]
			if page.Next, err = r.order.position(places[r.query.Count-1]); err != nil {
				return store.Page{}, err
			}
		}
	}
	for _, at := range places {
		page.Records = append(page.Records, r.site.record(at.at))
	}
	switch {
	case counted && !more && r.after == nil && (skip == 0 || len(places) > 0):
		page.Total = skip + int64(len(places))
	case counted:
		var err error
		if page.Total, err = r.count(); err != nil {
			return store.Page{}, err
		}
	}
	return page, r.include(places, &page)
}

// places reads the places of a page, and one more if there is one.
func (r *reader) places() ([]place, error) {
	if r.query.Skip > 0 {
		return r.placesBehind()
	}
	limits := map[string]int{}
	for _, typeName := range r.query.Types {
		limits[typeName] = r.query.Count + 1
		if r.after != nil && r.order.byCreation() {
			limits[typeName]++ // the last of the page before is read again
		}
	}
	var all []place
	for len(limits) > 0 {
		batch := &pgx.Batch{}
		for _, typeName := range r.query.Types {
			limit, pending := limits[typeName]
			if !pending {
				continue
			}
			err := r.queuePage(batch, typeName, limit, func(found []place, complete bool) {
				found, done := r.settle(found, complete)
				if !done {
					limits[typeName] *= 4
					return
				}
				delete(limits, typeName)
				all = append(all, found...)
			})
			if err != nil {
				return nil, err
			}
		}
		if err := r.site.pool.SendBatch(r.ctx, batch).Close(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, r.order.compare)
	return all, nil
}

// settle brings rows into the order of the query. In the order of creation they come by
// rid, which orders those of one millisecond by chance: the last millisecond counts only
// when it is complete. It reports whether the rows make a page.
func (r *reader) settle(found []place, complete bool) ([]place, bool) {
	if !r.order.byCreation() {
		return found, true
	}
	if !complete {
		last := found[len(found)-1].Ranks[0].Number
		found = slices.DeleteFunc(found, func(p place) bool { return p.Ranks[0].Number == last })
	}
	if r.after != nil {
		found = slices.DeleteFunc(found, func(p place) bool { return r.order.compare(*r.after, p) >= 0 })
	}
	slices.SortFunc(found, r.order.compare)
	if complete {
		return found, true
	}
	if len(found) < r.query.Count {
		return nil, false
	}
	// What was left out stands for the record that shows that there is more.
	if len(found) == r.query.Count {
		found = append(found, place{Ranks: []rank{{Missing: true}}})
	}
	return found, true
}

// queuePage writes the statement of a page of one type.
func (r *reader) queuePage(batch *pgx.Batch, typeName string, limit int, take func(found []place, complete bool)) error {
	c := r.compiler()
	s := r.source(c, typeName)
	s.limit = c.arg(limit)
	branches, err := s.branches()
	if err != nil {
		return err
	}
	if err := c.fits(); err != nil {
		return err
	}
	// One branch alone gives rows.
	batch.Queue(c.sql(branches), c.args...).Query(func(rows pgx.Rows) error {
		var found []place
		for rows.Next() {
			at, err := r.scanPlace(rows)
			if err != nil {
				return err
			}
			found = append(found, at)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		slices.SortFunc(found, r.order.compare)
		take(found, len(found) < limit)
		return nil
	})
	return nil
}

// source is the records of a type that match, in the order of the query.
func (r *reader) source(c *compiler, typeName string) *source {
	s := &source{compiler: c, typeName: typeName, columns: stateColumns, paged: r.after != nil}
	s.parts, s.lists = c.conjuncts(typeName, r.query.Where)
	if r.byRid() {
		s.descending = r.order.descends()
		if r.after != nil {
			least, most := creationBounds(r.after.Ranks[0])
			s.behind = func(rid string) string {
				if s.descending {
					return rid + " <= " + c.arg(most)
				}
				return rid + " >= " + c.arg(least)
			}
		}
		return s
	}
	if len(r.order) == 1 && r.order[0].Field == store.SortParam {
		s.byParam = &paramOrder{r.order[0], r.after}
	}
	s.ranked = func() ranking { return c.ranking(r.order, typeName, r.after) }
	if r.after != nil {
		s.inclusive = directed(strings.Compare(typeName, r.after.Type), r.order.descends()) > 0
	}
	return s
}

func (r *reader) scanPlace(rows pgx.Rows) (place, error) {
	if r.byRid() {
		at, err := scanState(rows)
		if err != nil {
			return place{}, err
		}
		return place{Ranks: []rank{{Number: at.rid >> ridShift}}, ID: at.id, Type: at.key.Type, at: at}, nil
	}
	ranks := make([]rank, len(r.order))
	targets := make([]any, 0, 3*len(ranks))
	for i := range ranks {
		targets = append(targets, &ranks[i].Missing, &ranks[i].Number, &ranks[i].Text)
	}
	at, err := scanState(rows, targets...)
	if err != nil {
		return place{}, err
	}
	return place{Ranks: ranks, ID: at.id, Type: at.key.Type, at: at}, nil
}

// count counts the matches of all types, as far as the query's total wants it.
func (r *reader) count() (int64, error) {
	var total int64
	batch := &pgx.Batch{}
	for _, typeName := range r.query.Types {
		c := r.compiler()
		s := &source{compiler: c, typeName: typeName, columns: "1"}
		s.parts, s.lists = c.conjuncts(typeName, r.query.Where)
		s.limit = "ALL"
		if r.query.Total == store.TotalWhenFree {
			s.limit = strconv.Itoa(freeTotal + 1)
		}
		branches, err := s.branches()
		if err == nil {
			err = c.fits()
		}
		if err != nil {
			return 0, err
		}
		batch.Queue(c.sql("SELECT count(*) FROM ("+branches+") counted"), c.args...).QueryRow(func(row pgx.Row) error {
			var n int64
			err := row.Scan(&n)
			total += n
			return err
		})
	}
	if err := r.site.pool.SendBatch(r.ctx, batch).Close(); err != nil {
		return 0, err
	}
	if r.query.Total == store.TotalWhenFree && total > freeTotal {
		return store.UnknownTotal, nil
	}
	return total, nil
}
