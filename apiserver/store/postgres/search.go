package postgres

import (
	"context"
	"errors"
	"slices"
	"sort"

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
