package postgres

import (
	"slices"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

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
