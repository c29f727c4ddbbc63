package postgres

import (
	"cmp"
	"time"

	"github.com/jackc/pgx/v5"
)

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
