package postgres

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
)

// historyPosition is the last version of a page. Of a history of one record it has the
// number alone.
type historyPosition struct {
	// Until is when what the first page told of ended: those that follow tell of the same.
	Until   int64  `json:"u,omitempty"`
	Updated *int64 `json:"t,omitempty"`
	Self    *int64 `json:"s,omitempty"`
	Version int64  `json:"v"`
}

// parseHistoryPosition reads a position of a history of one record or of many.
func parseHistoryPosition(text store.Position, ofOne bool) (historyPosition, error) {
	last := historyPosition{Version: math.MaxInt64}
	if text == nil {
		top := int64(math.MaxInt64)
		last.Updated, last.Self = &top, &top
		return last, nil
	}
	var at historyPosition
	if err := json.Unmarshal(text, &at); err != nil || at.Version < 1 || (at.Self == nil) != ofOne || (at.Updated == nil) != ofOne {
		return historyPosition{}, store.ErrBadPosition
	}
	return at, nil
}

// History implements store.Store.
func (s *Site) History(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	if !storable(query.Key.Type) || !storable(query.Key.ID) {
		return store.Page{}, store.ErrNotFound
	}
	ofOne := query.Key.ID != ""
	after, err := parseHistoryPosition(query.After, ofOne)
	if err != nil {
		return store.Page{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	h := historyRead{site: s, query: query, until: after.Until}
	if !ofOne && query.After == nil {
		if h.until, err = s.settled(ctx, s.newest.Load()); err != nil {
			return store.Page{}, storeError("read history", err)
		}
	}
	batch := &pgx.Batch{}
	if ofOne {
		h.queueOfOne(batch, after)
	} else {
		h.queueOfMany(batch, after)
	}
	if err := s.share.take(ctx); err != nil {
		return store.Page{}, storeError("read history", err)
	}
	defer s.share.giveBack()
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return store.Page{}, storeError("read history", err)
	}
	if ofOne && !h.found {
		return store.Page{}, store.ErrNotFound
	}
	return h.page(ofOne)
}

// historyRead is a history on its way.
type historyRead struct {
	site  *Site
	query store.HistoryQuery
	// until is when what is told of many records ends.
	until   int64
	found   bool
	total   int64
	records []store.Record
	selves  []int64
	// size is that of the records' bodies; cut tells that there are more than fit on a page.
	size int
	cut  bool
}

// matching is what versions, named x, must meet; until is when they ceased to be current.
func (h *historyRead) matching(st *statement, until string) string {
	where := ""
	if !h.query.Deletions {
		where += " AND NOT x.deleted"
	}
	if h.query.Key.ID == "" {
		where += " AND x.upd < " + st.arg(h.until)
	}
	if !h.query.Since.IsZero() {
		where += " AND x.upd >= " + st.arg(ceilMillis(h.query.Since))
	}
	if h.query.Current != nil {
		froms, untils := make([]int64, len(h.query.Current)), make([]int64, len(h.query.Current))
		for i, r := range h.query.Current {
			froms[i], untils[i] = floorMillis(r.From), math.MaxInt64
			if !r.Until.IsZero() {
				untils[i] = ceilMillis(r.Until)
			}
		}
		where += " AND EXISTS (SELECT FROM unnest(" + st.arg(froms) + "::int8[], " + st.arg(untils) +
			"::int8[]) c(f, u) WHERE c.f < " + until + " AND x.upd < c.u)"
	}
	return where
}

func floorMillis(t time.Time) int64 { return t.UnixMilli() }

func ceilMillis(t time.Time) int64 {
	millis := t.UnixMilli()
	if t.After(time.UnixMilli(millis)) {
		millis++
	}
	return millis
}

const (
	forever       = "9223372036854775807"
	newestVersion = "x.self, x.ver, x.rid, x.upd, " + forever + " AS until, x.method, x.deleted, x.body"
	pastVersion   = "x.self, x.ver, x.rid, x.upd, x.until, x.method, x.deleted, x.body"
)

func (h *historyRead) queueOfOne(batch *pgx.Batch, after historyPosition) {
	key := foldKey(h.query.Key)
	self := h.site.hash.self(key.Type, key.ID)
	exists := h.site.statement()
	batch.Queue("SELECT EXISTS (SELECT FROM res WHERE site = $1 AND self = "+exists.arg(self)+")",
		exists.args...).QueryRow(func(row pgx.Row) error { return row.Scan(&h.found) })
	versions := func(st *statement) string {
		of := "x.site = $1 AND x.self = " + st.arg(self)
		return "(SELECT " + newestVersion + " FROM res x WHERE " + of + h.matching(st, forever) +
			" UNION ALL SELECT " + pastVersion + " FROM hist x WHERE " + of + h.matching(st, "x.until") + ") v"
	}
	count := h.site.statement()
	h.queueCount(batch, "SELECT count(*) FROM "+versions(count), count)
	page := h.site.statement()
	h.queuePage(batch, "SELECT "+versionColumns+", v.self FROM "+versions(page)+" JOIN res r ON r.site = $1 AND r.self = v.self WHERE v.ver < "+page.arg(after.Version)+
		" ORDER BY v.ver DESC LIMIT "+page.arg(h.query.Count+1), page)
}

// ofTypes are the types whose history is read: those asked for or all that the site has,
// found by steps from one to the next.
func (h *historyRead) ofTypes(st *statement) (with, types string) {
	if h.query.Key.Type != "" {
		return "", "(SELECT " + st.arg(h.query.Key.Type) + "::text AS typ) t"
	}
	if h.query.Types != nil {
		types := slices.DeleteFunc(slices.Clone(h.query.Types), func(name string) bool { return !storable(name) })
		return "", "(SELECT DISTINCT unnest(" + st.arg(types) + "::text[]) AS typ) t"
	}
	return `WITH RECURSIVE types AS (
		(SELECT typ FROM res WHERE site = $1 ORDER BY typ LIMIT 1)
		UNION ALL SELECT (SELECT x.typ FROM res x WHERE x.site = $1 AND x.typ > t.typ ORDER BY x.typ LIMIT 1) FROM types t WHERE t.typ IS NOT NULL
		) `, "(SELECT typ FROM types WHERE typ IS NOT NULL) t"
}

func (h *historyRead) queueOfMany(batch *pgx.Batch, after historyPosition) {
	of := "x.site = $1 AND x.typ = t.typ"
	count := h.site.statement()
	with, types := h.ofTypes(count)
	h.queueCount(batch, with+"SELECT COALESCE(sum(v.n), 0)::int8 FROM "+types+" CROSS JOIN LATERAL (SELECT count(*) AS n FROM res x WHERE "+of+
		h.matching(count, forever)+" UNION ALL SELECT count(*) FROM hist x WHERE "+of+h.matching(count, "x.until")+") v", count)
	page := h.site.statement()
	with, types = h.ofTypes(page)
	behind := " AND (x.upd, x.self, x.ver) < (" + page.arg(*after.Updated) + ", " + page.arg(*after.Self) + ", " + page.arg(after.Version) + ")"
	limit := page.arg(h.query.Count + 1)
	first := " ORDER BY x.upd DESC, x.self DESC, x.ver DESC LIMIT " + limit
	h.queuePage(batch, with+"SELECT "+versionColumns+", v.self FROM "+types+" CROSS JOIN LATERAL ((SELECT "+newestVersion+" FROM res x WHERE "+of+
		h.matching(page, forever)+behind+first+") UNION ALL (SELECT "+pastVersion+" FROM hist x WHERE "+of+h.matching(page, "x.until")+behind+first+
		")) v JOIN res r ON r.site = $1 AND r.self = v.self ORDER BY v.upd DESC, v.self DESC, v.ver DESC LIMIT "+limit, page)
}

func (h *historyRead) queueCount(batch *pgx.Batch, sql string, st *statement) {
	batch.Queue(sql, st.args...).QueryRow(func(row pgx.Row) error { return row.Scan(&h.total) })
}

func (h *historyRead) queuePage(batch *pgx.Batch, sql string, st *statement) {
	if h.query.Count == 0 {
		return
	}
	batch.Queue(sql, st.args...).Query(func(found pgx.Rows) error {
		for found.Next() {
			c := columnsOf(found)
			record, err := h.site.scanVersion(c)
			if err != nil {
				return err
			}
			if h.size += len(record.Body.JSON); h.size > h.site.mostOnPage && len(h.records) > 0 {
				h.cut = true
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

func (h *historyRead) page(ofOne bool) (store.Page, error) {
	page := store.Page{Records: h.records, Total: h.total}
	if len(h.records) <= h.query.Count && !h.cut {
		return page, nil
	}
	n := min(len(h.records), h.query.Count)
	page.Records = h.records[:n]
	last := page.Records[n-1]
	position := historyPosition{Version: last.Version}
	if !ofOne {
		updated := last.Updated.UnixMilli()
		position.Until, position.Updated, position.Self = h.until, &updated, &h.selves[n-1]
	}
	var err error
	page.Next, err = json.Marshal(position)
	return page, err
}
