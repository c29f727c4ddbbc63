package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// historyPosition is the position after the last version of a page. In the history of one record,
// only Version is set.
type historyPosition struct {
	// Until is the watermark of the first page, in milliseconds since 1970. It applies to all further
	// pages.
	Until   int64  `json:"u,omitempty"`
	Updated *int64 `json:"t,omitempty"`
	Self    *int64 `json:"s,omitempty"`
	Version int64  `json:"v"`
}

// parseHistoryPosition parses a position. A nil text is the position before the first version. single
// reports whether the position must be one in the history of one record. Errors:
// store.ErrBadPosition.
func parseHistoryPosition(text store.Position, single bool) (historyPosition, error) {
	last := historyPosition{Version: math.MaxInt64}
	if text == nil {
		top := int64(math.MaxInt64)
		last.Updated, last.Self = &top, &top
		return last, nil
	}
	var at historyPosition
	if err := json.Unmarshal(text, &at); err != nil || at.Version < 1 || (at.Self == nil) != single || (at.Updated == nil) != single {
		return historyPosition{}, store.ErrBadPosition
	}
	return at, nil
}

// History implements store.Store.
func (s *Store) History(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	if !isStorable(query.Key.Type) || !isStorable(query.Key.ID) {
		return store.Page{}, store.ErrNotFound
	}
	single := query.Key.ID != ""
	after, err := parseHistoryPosition(query.After, single)
	if err != nil {
		return store.Page{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	h := historyRead{site: s, ctx: ctx, query: query, watermark: after.Until}
	if !single && query.After == nil {
		if h.watermark, err = s.watermark(ctx, s.newest.Load()); err != nil {
			return store.Page{}, storeError("read history", err)
		}
	}
	batch := &pgx.Batch{}
	if single {
		h.queueOfRecord(batch, after)
	} else {
		h.queueOfMany(batch, after)
	}
	if h.err != nil {
		return store.Page{}, h.err
	}
	if err := s.share.acquire(ctx); err != nil {
		return store.Page{}, storeError("read history", err)
	}
	defer s.share.release()
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return store.Page{}, queryError("read history", err)
	}
	if single && !h.found {
		return store.Page{}, store.ErrNotFound
	}
	return h.page(single)
}

type historyRead struct {
	site  *Store
	ctx   context.Context
	query store.HistoryQuery
	// watermark is the watermark of a history of several records, in milliseconds since 1970.
	watermark int64
	// found is set in the history of one record if the record has a row, live or deleted, and its
	// newest version is visible.
	found   bool
	total   int64
	records []store.Record
	selves  []int64
	// size is the length of the bodies of the records in bytes. isTruncated reports whether versions
	// were left out because the page would have exceeded its maximum size.
	size        int
	isTruncated bool
	// err is the error of the translation of the query into statements.
	err error
}

// filter returns the SQL conditions of the query on a version, named x. until is the SQL of the
// time at which the version was superseded.
func (h *historyRead) filter(st *sqlplan.Statement, until string) string {
	where := ""
	if !h.query.Deletions {
		where += " AND NOT x.deleted"
	}
	if h.query.Key.ID == "" {
		where += " AND x.upd < " + st.Arg(h.watermark)
	}
	if !h.query.Since.IsZero() {
		where += " AND x.upd >= " + st.Arg(sqlplan.CeilMillis(h.query.Since))
	}
	if h.query.Current != nil {
		froms, untils := make([]int64, len(h.query.Current)), make([]int64, len(h.query.Current))
		for i, r := range h.query.Current {
			froms[i], untils[i] = floorMillis(r.From), math.MaxInt64
			if !r.Until.IsZero() {
				untils[i] = sqlplan.CeilMillis(r.Until)
			}
		}
		where += " AND EXISTS (SELECT FROM unnest(" + st.Arg(froms) + "::int8[], " + st.Arg(untils) +
			"::int8[]) c(f, u) WHERE c.f < " + until + " AND x.upd < c.u)"
	}
	return where + h.accessFilter(st, until != forever)
}

func floorMillis(t time.Time) int64 { return t.UnixMilli() }

const (
	forever       = "9223372036854775807"
	newestVersion = "x.self, x.ver, x.rid, x.upd, " + forever + " AS until, x.method, x.deleted, x.body"
	pastVersion   = "x.self, x.ver, x.rid, x.upd, x.until, x.method, x.deleted, x.body"
)

// accessFilter returns the SQL condition of the query's Access on a version, named x. It is empty
// if the query has no Access. past reports whether x is a row of hist rather than res. An error is stored
// in h.err.
func (h *historyRead) accessFilter(st *sqlplan.Statement, past bool) string {
	filter, err := h.site.planIndex.VersionFilter(h.ctx, st, h.query, past)
	h.err = cmp.Or(h.err, err)
	return filter
}

func (h *historyRead) queueOfRecord(batch *pgx.Batch, after historyPosition) {
	key := h.query.Key.Folded()
	self := h.site.hash.Self(key.Type, key.ID)
	exists := h.site.planIndex.Statement()
	batch.Queue("SELECT EXISTS (SELECT FROM res x WHERE x.site = $1 AND x.self = "+exists.Arg(self)+h.accessFilter(exists, false)+")",
		exists.Args...).QueryRow(func(row pgx.Row) error { return row.Scan(&h.found) })
	versions := func(st *sqlplan.Statement) string {
		of := "x.site = $1 AND x.self = " + st.Arg(self)
		return "(SELECT " + newestVersion + " FROM res x WHERE " + of + h.filter(st, forever) +
			" UNION ALL SELECT " + pastVersion + " FROM hist x WHERE " + of + h.filter(st, "x.until") + ") v"
	}
	count := h.site.planIndex.Statement()
	h.queueCount(batch, "SELECT count(*) FROM "+versions(count), count)
	page := h.site.planIndex.Statement()
	h.queuePage(batch, "SELECT "+versionColumns+", v.self FROM "+versions(page)+" JOIN res r ON r.site = $1 AND r.self = v.self WHERE v.ver < "+page.Arg(after.Version)+
		" ORDER BY v.ver DESC LIMIT "+page.Arg(h.query.Count+1), page)
}

// ofTypes returns the SQL of a table, named t, of the types whose history is read, and the CTE that
// this table needs. If the query names no types, the CTE skips through the index from type to type.
func (h *historyRead) ofTypes(st *sqlplan.Statement) (with, types string) {
	if h.query.Key.Type != "" {
		return "", "(SELECT " + st.Arg(h.query.Key.Type) + "::text AS typ) t"
	}
	if h.query.Types != nil {
		types := slices.DeleteFunc(slices.Clone(h.query.Types), func(name string) bool { return !isStorable(name) })
		return "", "(SELECT DISTINCT unnest(" + st.Arg(types) + "::text[]) AS typ) t"
	}
	return `WITH RECURSIVE types AS (
		(SELECT typ FROM res WHERE site = $1 ORDER BY typ LIMIT 1)
		UNION ALL SELECT (SELECT x.typ FROM res x WHERE x.site = $1 AND x.typ > t.typ ORDER BY x.typ LIMIT 1) FROM types t WHERE t.typ IS NOT NULL
		) `, "(SELECT typ FROM types WHERE typ IS NOT NULL) t"
}

func (h *historyRead) queueOfMany(batch *pgx.Batch, after historyPosition) {
	of := "x.site = $1 AND x.typ = t.typ"
	count := h.site.planIndex.Statement()
	with, types := h.ofTypes(count)
	h.queueCount(batch, with+"SELECT COALESCE(sum(v.n), 0)::int8 FROM "+types+" CROSS JOIN LATERAL (SELECT count(*) AS n FROM res x WHERE "+of+
		h.filter(count, forever)+" UNION ALL SELECT count(*) FROM hist x WHERE "+of+h.filter(count, "x.until")+") v", count)
	page := h.site.planIndex.Statement()
	with, types = h.ofTypes(page)
	afterLast := " AND (x.upd, x.self, x.ver) < (" + page.Arg(*after.Updated) + ", " + page.Arg(*after.Self) + ", " + page.Arg(after.Version) + ")"
	limit := page.Arg(h.query.Count + 1)
	first := " ORDER BY x.upd DESC, x.self DESC, x.ver DESC LIMIT " + limit
	h.queuePage(batch, with+"SELECT "+versionColumns+", v.self FROM "+types+" CROSS JOIN LATERAL ((SELECT "+newestVersion+" FROM res x WHERE "+of+
		h.filter(page, forever)+afterLast+first+") UNION ALL (SELECT "+pastVersion+" FROM hist x WHERE "+of+h.filter(page, "x.until")+afterLast+first+
		")) v JOIN res r ON r.site = $1 AND r.self = v.self ORDER BY v.upd DESC, v.self DESC, v.ver DESC LIMIT "+limit, page)
}

func (h *historyRead) queueCount(batch *pgx.Batch, sql string, st *sqlplan.Statement) {
	batch.Queue(sql, st.Args...).QueryRow(func(row pgx.Row) error { return row.Scan(&h.total) })
}

func (h *historyRead) queuePage(batch *pgx.Batch, sql string, st *sqlplan.Statement) {
	if h.query.Count == 0 {
		return
	}
	batch.Queue(sql, st.Args...).Query(func(found pgx.Rows) error {
		for found.Next() {
			c := columnsOf(found)
			record, err := h.site.scanVersion(c)
			if err != nil {
				return err
			}
			if h.size += len(record.Body.JSON); h.size > h.site.maxPageBytes && len(h.records) > 0 {
				h.isTruncated = true
				return nil
			}
			h.records, h.selves = append(h.records, record), append(h.selves, c.int64())
			if c.err != nil {
				return c.err
			}
		}
		return found.Err()
	})
}

func (h *historyRead) page(single bool) (store.Page, error) {
	page := store.Page{Records: h.records, Total: h.total}
	if len(h.records) <= h.query.Count && !h.isTruncated {
		return page, nil
	}
	n := min(len(h.records), h.query.Count)
	page.Records = h.records[:n]
	last := page.Records[n-1]
	position := historyPosition{Version: last.Version}
	if !single {
		updated := last.Updated.UnixMilli()
		position.Until, position.Updated, position.Self = h.watermark, &updated, &h.selves[n-1]
	}
	var err error
	page.Next, err = json.Marshal(position)
	return page, err
}
