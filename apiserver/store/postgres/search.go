package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
)

// freeTotal is how many matches are counted for a total that nobody insisted on.
const freeTotal = 1000

// mostSkipped is beyond every end.
const mostSkipped = 1 << 40

// Search implements store.Store.
func (s *Site) Search(ctx context.Context, query store.Query) (store.Page, error) {
	o := order.Of(query)
	after, err := o.Parse(query.After)
	if err != nil {
		return store.Page{}, err
	}
	if after != nil && !storable(after.ID) {
		return store.Page{}, store.ErrBadPosition
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	r := &reader{site: s, ctx: ctx, query: query, order: o, after: after}
	defer r.giveBack()
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
	order   order.Order
	after   *order.Place
	paths   []path
	answers answers
	// asked is what the page was read from, if lists are remembered, of which passed turned
	// out to be too long.
	asked  *source
	passed int
	texts  texts
	// shares tells that the search has one of the sessions that the site's searches may hold.
	shares bool
}

// takeSession waits for a session of the site's share, if the search has none yet.
func (r *reader) takeSession() (err error) {
	if !r.shares {
		err = r.site.share.take(r.ctx)
		r.shares = err == nil
	}
	return err
}

func (r *reader) giveBack() {
	if r.shares {
		r.site.share.giveBack()
	}
}

func (r *reader) search() (store.Page, error) {
	for _, typeName := range r.query.Types {
		if n := r.compiler().sizeOf(r.query.WhereOf(typeName)); n > mostConditions {
			return store.Page{}, fmt.Errorf("%w: it has %d conditions, at most %d can be", store.ErrQueryTimeout, n, mostConditions)
		}
	}
	r.query.Types = slices.Compact(slices.Sorted(slices.Values(r.query.Types)))
	if err := r.learnPaths(); err != nil {
		return store.Page{}, err
	}
	if r.query.ByTime() {
		if err := r.settle(); err != nil {
			return store.Page{}, err
		}
	}
	page := store.Page{Total: store.UnknownTotal}
	r.query.Skip = min(r.query.Skip, mostSkipped)
	skip := int64(r.query.Skip)
	counted := r.query.Total == store.TotalAccurate || r.after == nil && r.query.Total == store.TotalWhenFree
	var places []place
	more := r.query.Count == 0
	room := newRoom()
	if r.query.Count > 0 {
		var err error
		if places, more, err = r.places(room); err != nil {
			return store.Page{}, err
		}
		if more {
			page.Next = r.order.Position(&places[len(places)-1].Place)
		}
	}
	var err error
	if page.Records, err = r.records(places); err != nil {
		return store.Page{}, err
	}
	switch {
	case counted && !more && r.after == nil && (skip == 0 || len(places) > 0):
		page.Total = skip + int64(len(places))
	case counted:
		if page.Total, err = r.count(); err != nil {
			return store.Page{}, err
		}
	}
	if err := r.include(places, &page); err != nil {
		return store.Page{}, err
	}
	room.release()
	return page, nil
}

// settle restricts the query to records that no open write comes before.
func (r *reader) settle() error {
	var own int64
	if r.after == nil {
		own = r.site.newest.Load()
	}
	until, err := r.site.settled(r.ctx, own)
	if err != nil {
		return err
	}
	r.query = r.query.Before(time.UnixMilli(until))
	return nil
}

// places reads the places of a page into a room, and tells whether there are more. Their
// bodies are still packed, and those of the rows.
func (r *reader) places(room *room) (places []place, more bool, err error) {
	room.rows.most = r.site.mostOnPage
	if r.query.Skip > 0 {
		err = r.askBehind(&room.rows)
	} else {
		err = r.ask(&room.rows)
	}
	if err != nil {
		return nil, false, err
	}
	room.furnish()
	r.texts.Grow(room.rows.len() * textsOfRecord)
	err = room.rows.each(func(n int, c *columns) (err error) {
		room.places[n], err = r.scanPlace(c, &room.states[n])
		return err
	})
	if err != nil {
		return nil, false, err
	}
	r.remember(room.rows.took >= slowFor)
	places, more = room.places, len(room.rows.cut) > 0
	ends := make([]order.Place, len(room.rows.cut))
	for i, n := range room.rows.cut {
		ends[i] = places[n].Place
	}
	if r.query.Skip == 0 { // otherwise they come in order
		slices.SortFunc(places, func(a, b place) int { return r.order.Compare(&a.Place, &b.Place) })
	}
	for i := range ends { // what comes behind one of them may come behind what was cut off, too
		places = places[:sort.Search(len(places), func(n int) bool { return r.order.Compare(&places[n].Place, &ends[i]) > 0 })]
	}
	fit := r.fitting(places)
	return places[:fit], more || fit < len(places), nil
}

// fitting is how many of the places a page has room for.
func (r *reader) fitting(places []place) int {
	size := 0
	for n := range places {
		size += places[n].packed.size
		if n == r.query.Count || n > 0 && size > r.site.mostOnPage {
			return n
		}
	}
	return len(places)
}

// ask sends the statements of a page, one for each type. A batch costs more than a query.
func (r *reader) ask(into *fetched) error {
	batch := &pgx.Batch{}
	for _, typeName := range r.query.Types {
		c := r.compiler()
		s := r.page(c, typeName)
		branches, err := s.branches()
		if err != nil {
			return err
		}
		if err := c.fits(); err != nil {
			return err
		}
		if s.remembers {
			r.asked = s
			if s.short() && r.query.Count <= mostShort {
				return r.site.questions.rowsOf(r.ctx, c.sql(branches), c.args, into)
			}
			alone := &question{sql: c.sql(branches), args: c.args, rows: into}
			if err := r.takeSession(); err != nil {
				return err
			}
			return alone.askAlone(r.ctx, r.site.pool)
		}
		batch.Queue(c.sql(branches), c.args...).Query(into.take)
	}
	if err := r.takeSession(); err != nil {
		return err
	}
	return r.site.pool.SendBatch(r.ctx, batch).Close()
}

// page is the source of a page and one record more.
func (r *reader) page(c *compiler, typeName string) *source {
	s := r.source(c, typeName)
	s.page = r.query.Count + 1
	s.limit = c.arg(s.page)
	s.remembers = len(r.query.Types) == 1
	return s
}

// remember notes the lists that turned out to be too long, and those known to be whose walk
// was slow.
func (r *reader) remember(slow bool) {
	if r.asked == nil {
		return
	}
	r.site.longLists.add(r.asked.tried[:r.passed], slow)
	if slow {
		r.site.longLists.add(r.asked.skipped, slow)
	}
}

// source is the records of a type that match, in the order of the query.
func (r *reader) source(c *compiler, typeName string) *source {
	s := &source{compiler: c, typeName: typeName, order: r.order, after: r.after}
	s.parts, s.lists = c.conjuncts(typeName, r.query.WhereOf(typeName))
	if r.after != nil {
		s.inclusive = order.Directed(strings.Compare(typeName, r.after.Type), r.order.Descends()) > 0
	}
	return s
}

// unranked is what all records have in the order of creation.
var unranked = make([]order.Rank, 1)

func (r *reader) scanPlace(c *columns, at *state) (place, error) {
	stored, err := at.scan(c, &r.texts)
	if err != nil {
		return place{}, err
	}
	r.passed = max(r.passed, int(c.int16()))
	packed, err := readPacked(stored)
	if err != nil {
		return place{}, err
	}
	ranks := unranked
	if !r.order.ByCreation() {
		ranks = make([]order.Rank, len(r.order))
		for i := range ranks {
			ranks[i] = order.Rank{Missing: c.bool(), Number: c.int64(), Text: string(c.bytes())}
		}
	}
	return place{order.Place{Ranks: ranks, Created: at.rid, Type: at.key.Type, ID: at.id}, at, packed}, c.err
}

// count counts the matches of all types, as far as the query's total wants it.
func (r *reader) count() (int64, error) {
	var total int64
	batch := &pgx.Batch{}
	for _, typeName := range r.query.Types {
		c := r.compiler()
		s := &source{compiler: c, typeName: typeName, onlyRid: true, order: order.Of(store.Query{})}
		s.parts, s.lists = c.conjuncts(typeName, r.query.WhereOf(typeName))
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
	if err := r.takeSession(); err != nil {
		return 0, err
	}
	if err := r.site.pool.SendBatch(r.ctx, batch).Close(); err != nil {
		return 0, err
	}
	if r.query.Total == store.TotalWhenFree && total > freeTotal {
		return store.UnknownTotal, nil
	}
	return total, nil
}
