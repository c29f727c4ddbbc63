package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// maxCountedTotal is the maximum number of matches that a search counts for store.TotalWhenFree. If
// there are more, the total is store.UnknownTotal.
const maxCountedTotal = 1000

// maxCountedCandidates is the maximum number of records that a search tests in a scan to count its
// matches for store.TotalWhenFree. If there are more, the total is store.UnknownTotal.
const maxCountedCandidates = 2500

// maxSkip is the maximum number of records to skip; a larger number is replaced by it. It is more
// than a site can hold, and prevents overflows.
const maxSkip = 1 << 40

// Search implements store.Store.
func (s *Store) Search(ctx context.Context, query store.Query) (store.Page, error) {
	o := order.Of(query)
	after, err := o.Parse(query.After)
	if err != nil {
		return store.Page{}, err
	}
	if after != nil && (!isStorable(after.ID) || after.InMillis()) {
		return store.Page{}, store.ErrBadPosition
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	search := sqlplan.Search{Context: ctx, Index: &s.planIndex, Query: query, Order: o, After: after}
	if page, answered, err := s.searchReplica(search); answered {
		return page, err
	}
	page, err := s.searchPrimary(search)
	if s.lostEarlier(ctx, err) {
		page, err = s.searchPrimary(search)
	}
	if err != nil {
		return store.Page{}, searchError(err)
	}
	return page, nil
}

func (s *Store) searchPrimary(search sqlplan.Search) (store.Page, error) {
	r := &searcher{Search: search, site: s, from: s.pool}
	defer r.releaseSession()
	return r.search()
}

func searchError(err error) error {
	var ambiguous *store.AmbiguousError
	var tooMany *store.TooManyConditionsError
	if errors.As(err, &ambiguous) || errors.As(err, &tooMany) || errors.Is(err, store.ErrQueryTimeout) {
		return err
	}
	return queryError("search", err)
}

// hit is a match and its place in the order of the query. Created of the place is the rid of the
// record.
type hit struct {
	order.Place
	state *state
	// body is the stored body of the record, still compressed.
	body packedBody
}

// searcher is one search in progress.
type searcher struct {
	sqlplan.Search
	site *Store
	// from is the pool, or a connection to a replica. The statements of a search on a replica are not
	// batched, and all run on that connection: another connection may lead to a replica with another
	// lag.
	from      querier
	onReplica bool
	// plan is the statement of the page, or nil if the cache of long lists does not apply to it.
	// listsTooLong is the number of its TriedLists, from the first on, that were too long.
	plan         *sqlplan.Page
	listsTooLong int
	texts        texts
	// hasSession reports whether the search holds one of the sessions of the site's share.
	hasSession bool
}

// takeSession acquires a session of the site's share, if the search has none yet. The search holds
// it until its end. A search on a replica has its connection already.
func (r *searcher) takeSession() (err error) {
	if !r.hasSession && !r.onReplica {
		err = r.site.share.acquire(r.Context)
		r.hasSession = err == nil
	}
	return err
}

func (r *searcher) releaseSession() {
	if r.hasSession {
		r.site.share.release()
	}
}

func (r *searcher) search() (store.Page, error) {
	for _, typeName := range r.Query.Types {
		if n := r.CountConditions(typeName); n > sqlplan.MaxConditions {
			return store.Page{}, &store.TooManyConditionsError{Count: n, Max: sqlplan.MaxConditions}
		}
	}
	r.Query.Types = slices.Compact(slices.Sorted(slices.Values(r.Query.Types)))
	if err := r.loadReferencePaths(); err != nil {
		return store.Page{}, err
	}
	page := store.Page{Total: store.UnknownTotal}
	r.Query.Skip = min(r.Query.Skip, maxSkip)
	skip := int64(r.Query.Skip)
	counted := r.needsTotal()
	var hits []hit
	more := r.Query.Count == 0
	buffer := newPageBuffer()
	var err error
	switch {
	case r.Query.ByTime():
		hits, more, err = r.readHitsByTime(buffer)
	case r.Query.Count > 0:
		hits, more, err = r.readHits(buffer)
	}
	if err != nil {
		return store.Page{}, err
	}
	if len(hits) > 0 && more {
		page.Next = r.Order.Position(&hits[len(hits)-1].Place)
	}
	if page.Records, err = r.unpackRecords(hits); err != nil {
		return store.Page{}, err
	}
	switch {
	case counted && !more && r.After == nil && (skip == 0 || len(hits) > 0):
		page.Total = skip + int64(len(hits))
	case counted:
		if page.Total, err = r.count(); err != nil {
			return store.Page{}, err
		}
	}
	if err := r.include(hits, &page); err != nil {
		return store.Page{}, err
	}
	buffer.release()
	return page, nil
}

// needsTotal reports whether the page has the number of all matches.
func (r *searcher) needsTotal() bool {
	return r.Query.Total == store.TotalAccurate || r.After == nil && r.Query.Total == store.TotalWhenFree
}

// readHitsByTime is like readHits, but for a query that must not find records that were updated at
// or after the watermark, because a write that is still in progress may add records with earlier
// times (clock.go). If the page is one for a batch, it is first read without that bound, and hits that
// are too late are dropped. If the rest does not fill the page, it is read again, with the watermark as
// a condition.
func (r *searcher) readHitsByTime(buffer *pageBuffer) (hits []hit, more bool, err error) {
	hits, more, watermark, err := r.tryHitsByTime(buffer)
	if hits != nil || err != nil {
		return hits, more, err
	}
	if watermark <= r.ownNewest() {
		if watermark, err = r.site.watermark(r.Context, r.ownNewest()); err != nil {
			return nil, false, err
		}
	}
	r.Query = r.Query.Before(time.UnixMilli(watermark))
	if r.Query.Count == 0 {
		return nil, true, nil
	}
	return r.readHits(buffer)
}

// tryHitsByTime reads a page without the watermark as a bound, and drops the hits that are not older
// than the watermark. It returns the watermark, which it reads before the page in the same round trip,
// unless an earlier one is still valid. hits is nil, without an error, if the query is not one for a
// batch, if too few hits remain, or if ownNewest is not older than the watermark. The watermark is 0 if
// it was not read.
func (r *searcher) tryHitsByTime(buffer *pageBuffer) (hits []hit, more bool, watermark int64, err error) {
	if len(r.Query.Types) != 1 || r.Query.Skip > 0 || r.Query.Count == 0 || r.Query.Count > maxBatchedPage {
		return nil, false, 0, nil
	}
	expected, few := r.site.late.expected()
	if !few {
		return nil, false, 0, nil
	}
	page, limit, err := r.pageWithLateHits(expected)
	if err != nil || !page.IsBounded {
		return nil, false, 0, err
	}
	ownNewest := r.ownNewest()
	r.plan = page
	buffer.rows.maxBytes = r.site.maxPageBytes
	settled := int64(0)
	if !r.needsTotal() { // the total must include what other processes have written since
		settled = r.site.late.settledWatermark(r.site.newest.Load())
	}
	if watermark = settled; settled > 0 {
		err = r.site.queries.query(r.Context, page.SQL, page.Args, &buffer.rows)
	} else {
		began := time.Now()
		watermark, err = r.site.queries.queryAfterWatermark(r.Context, page.SQL, page.Args, &buffer.rows)
		if err == nil && watermark > 0 {
			r.site.late.noteWatermark(watermark, began)
		}
	}
	if err != nil {
		return nil, false, 0, err
	}
	if r.dropLongList(&buffer.rows) {
		return r.tryHitsByTime(buffer)
	}
	all, truncated, err := r.decodeHits(buffer)
	if err != nil {
		return nil, false, 0, err
	}
	newest := int64(0)
	hits = slices.DeleteFunc(all, func(h hit) bool {
		updated := h.state.updated.UnixMilli()
		newest = max(newest, updated)
		return updated >= watermark
	})
	late := len(all) - len(hits)
	r.site.late.note(late, newest)
	first := r.Order[0]
	isComplete := buffer.rows.len() < limit && !truncated || first.Field == store.SortUpdated && !first.Descending
	if settled > 0 && late > 0 || watermark <= ownNewest || late > 0 && !isComplete && len(hits) <= r.Query.Count {
		buffer.rows.reset()
		r.listsTooLong = 0
		if settled > 0 { // writes have begun again, so the next try reads the watermark
			return r.tryHitsByTime(buffer)
		}
		return nil, false, watermark, nil
	}
	r.Query = r.Query.Before(time.UnixMilli(watermark)) // for the total
	hits, more = r.cutPage(hits, truncated && late == 0)
	if hits == nil {
		hits = []hit{}
	}
	return hits, more, watermark, nil
}

// pageWithLateHits returns the statement for a page of the only type, with a number of rows more because
// so many hits may be too late, and the maximum number of rows.
func (r *searcher) pageWithLateHits(expected int) (page *sqlplan.Page, limit int, err error) {
	r.Query.Count += expected
	defer func() { r.Query.Count -= expected }()
	page, err = r.Page(r.Query.Types[0])
	return page, r.Query.Count + 1, err
}

// ownNewest returns the time of the newest write of this process that the page must include if it
// matches, or 0 for a page after the first one.
func (r *searcher) ownNewest() int64 {
	if r.After != nil {
		return 0
	}
	return r.site.newest.Load()
}

// readHits reads the hits of a page into the buffer, and reports whether more matches follow. It
// does not decompress their bodies, which unpackRecords does.
func (r *searcher) readHits(buffer *pageBuffer) (hits []hit, more bool, err error) {
	buffer.rows.maxBytes = r.site.maxPageBytes
	if r.Query.Skip > 0 {
		err = r.readPageAfterSkip(&buffer.rows)
	} else {
		err = r.readPage(&buffer.rows)
	}
	if err != nil {
		return nil, false, err
	}
	hits, truncated, err := r.decodeHits(buffer)
	if err != nil {
		return nil, false, err
	}
	hits, more = r.cutPage(hits, truncated)
	return hits, more, nil
}

// decodeHits returns the hits of the rows in the buffer, in the order of the query. truncated reports
// whether some are missing after the last one, because the rows of a result were too large.
func (r *searcher) decodeHits(buffer *pageBuffer) (hits []hit, truncated bool, err error) {
	buffer.resize()
	r.texts.Grow(buffer.rows.len() * textBytesPerRecord)
	err = buffer.rows.each(func(n int, c *columns) (err error) {
		buffer.hits[n], err = r.scanHit(c, &buffer.states[n])
		return err
	})
	if err != nil {
		return nil, false, err
	}
	r.updateLongLists(buffer.rows.took >= slowScan)
	hits = buffer.hits
	ends := make([]order.Place, len(buffer.rows.truncated))
	for i, n := range buffer.rows.truncated {
		ends[i] = hits[n].Place
	}
	if r.Query.Skip == 0 { // readPageAfterSkip returns the hits in order already
		slices.SortFunc(hits, func(a, b hit) int { return r.Order.Compare(&a.Place, &b.Place) })
	}
	for i := range ends { // after the last hit of a truncated result, hits may be missing, so the page must end there
		hits = hits[:sort.Search(len(hits), func(n int) bool { return r.Order.Compare(&hits[n].Place, &ends[i]) > 0 })]
	}
	return hits, len(ends) > 0, nil
}

// cutPage returns the hits that fit on the page, and reports whether more matches follow.
func (r *searcher) cutPage(hits []hit, truncated bool) (page []hit, more bool) {
	fit := r.hitsThatFit(hits)
	return hits[:fit], truncated || fit < len(hits)
}

// hitsThatFit returns the number of hits that fit on the page, by Query.Count and by the maximum
// size of a page. It is at least one if there are hits.
func (r *searcher) hitsThatFit(hits []hit) int {
	size := 0
	for n := range hits {
		size += hits[n].body.size
		if n == r.Query.Count || n > 0 && size > r.site.maxPageBytes {
			return n
		}
	}
	return len(hits)
}

// maxBatchedPage is the maximum number of records on a page whose query is batched with other
// queries. A query for more records uses a connection of its own.
const maxBatchedPage = 100

// readPage reads the rows of a page, and one row more to know whether further matches follow. It
// sends one statement for each type. If there are several, it sends them in one pgx.Batch, which is
// more expensive than a single query.
func (r *searcher) readPage(into *rowBuffer) error {
	if len(r.Query.Types) == 1 {
		err := r.readOne(into)
		if err == nil && r.dropLongList(into) {
			err = r.readOne(into)
		}
		return err
	}
	batch := &pgx.Batch{}
	for _, typeName := range r.Query.Types {
		page, err := r.Page(typeName)
		if err != nil {
			return err
		}
		batch.Queue(page.SQL, page.Args...).Query(into.read)
	}
	if err := r.takeSession(); err != nil {
		return err
	}
	return r.from.SendBatch(r.Context, batch).Close()
}

// readOne reads the rows of a page of one type. It does so in a batch with other queries if the time
// of the statement is bounded or quick on average, the page has at most maxBatchedPage records, and
// the search does not run on a replica. Otherwise the statement runs alone.
func (r *searcher) readOne(into *rowBuffer) error {
	page, err := r.Page(r.Query.Types[0])
	if err != nil {
		return err
	}
	r.plan = page
	start := time.Now()
	if !r.onReplica && r.Query.Count <= maxBatchedPage && (page.IsBounded || r.site.quick.isQuick(page.SQL)) {
		err = r.site.queries.query(r.Context, page.SQL, page.Args, into)
	} else {
		err = r.readAlone(page.SQL, page.Args, into)
	}
	if err == nil && !page.IsBounded {
		r.site.quick.add(page.SQL, cmp.Or(into.took, time.Since(start)))
	}
	return err
}

// dropLongList reports whether the rows are those of a partial page (sqlplan.Page.IsPartial) whose list
// is too long. In that case, it empties the buffer and adds the list to the cache, and the next statement
// has all branches.
func (r *searcher) dropLongList(rows *rowBuffer) bool {
	if !r.plan.IsPartial || !rows.beginsWithNull() {
		return false
	}
	r.site.longLists.add(r.plan.TriedLists, false)
	rows.reset()
	r.AllBranches = true
	return true
}

// readPageAfterSkip reads the rows of a page and one row more, after the first Query.Skip matches.
func (r *searcher) readPageAfterSkip(into *rowBuffer) error {
	if len(r.Query.Types) == 0 {
		return nil
	}
	sql, args, err := r.PageAfterSkip()
	if err != nil {
		return err
	}
	return r.readAlone(sql, args, into)
}

// readAlone runs a statement in one of the site's sessions.
func (r *searcher) readAlone(sql string, args []any, into *rowBuffer) error {
	if err := r.takeSession(); err != nil {
		return err
	}
	query := &batchedQuery{sql: sql, args: args, rows: into}
	return query.runAlone(r.Context, r.from)
}

// updateLongLists adds the lists that were too long to the cache. If the search was slow, it also
// marks the lists as slow that the plan skipped because of the cache.
func (r *searcher) updateLongLists(slow bool) {
	if r.plan == nil {
		return
	}
	r.site.longLists.add(r.plan.TriedLists[:r.listsTooLong], slow)
	if slow {
		r.site.longLists.add(r.plan.SkippedLists, slow)
	}
}

// creationRanks are the ranks of a record in the order of creation. They are the same for all
// records, because Place.Created has the order.
var creationRanks = make([]order.Rank, 1)

func (r *searcher) scanHit(c *columns, at *state) (hit, error) {
	stored, err := at.scan(c, &r.texts)
	if err != nil {
		return hit{}, err
	}
	r.listsTooLong = max(r.listsTooLong, int(c.int16()))
	packed, err := parseBody(stored)
	if err != nil {
		return hit{}, decodeError(at.key, at.version, err)
	}
	ranks := creationRanks
	if !r.Order.ByCreation() {
		ranks = make([]order.Rank, len(r.Order))
		for i := range ranks {
			ranks[i] = order.Rank{Missing: c.bool(), Number: c.int64(), Text: string(c.bytes())}
		}
	}
	return hit{order.Place{Ranks: ranks, Created: at.rid, Type: at.key.Type, ID: at.id}, at, packed}, c.err
}

// count returns the number of matches of all types. With store.TotalWhenFree, it returns
// store.UnknownTotal if there are more than maxCountedTotal, or more than maxCountedCandidates records to
// test.
func (r *searcher) count() (int64, error) {
	var total int64
	var limits sqlplan.CountLimits
	if r.Query.Total == store.TotalWhenFree {
		limits = sqlplan.CountLimits{Matches: maxCountedTotal + 1, Candidates: maxCountedCandidates}
	}
	batch := &pgx.Batch{}
	for _, typeName := range r.Query.Types {
		sql, args, err := r.Count(typeName, limits)
		if err != nil {
			return 0, err
		}
		batch.Queue(sql, args...).QueryRow(func(row pgx.Row) error {
			var n int64
			err := row.Scan(&n)
			total += n
			return err
		})
	}
	if err := r.takeSession(); err != nil {
		return 0, err
	}
	if err := r.from.SendBatch(r.Context, batch).Close(); err != nil {
		return 0, err
	}
	if r.Query.Total == store.TotalWhenFree && total > maxCountedTotal {
		return store.UnknownTotal, nil
	}
	return total, nil
}
