package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
)

var _ store.Archive = (*Store)(nil)

// dumpPage selects the versions of a page of records, in the order of a dump. It is one statement,
// so that each record is in the state of one moment. The versions of a record are in any order:
// otherwise Postgres would sort all rows of the page.
const dumpPage = `SELECT ` + versionColumns + ` FROM (
		SELECT * FROM res x WHERE x.site = $1 AND (x.typ, x.id) > ($2, $3) AND x.typ <> $4 AND x.upd >= $5 ORDER BY x.typ, x.id LIMIT $6
	) r CROSS JOIN LATERAL (
		SELECT h.ver, h.rid, h.upd, h.until, h.method, h.deleted, h.body FROM hist h WHERE h.site = $1 AND h.self = r.self AND r.ver > 1
		UNION ALL SELECT r.ver, r.rid, r.upd, 9223372036854775807, r.method, r.deleted, r.body
	) v ORDER BY r.typ, r.id`

// dumpKeys is dumpPage for the records with given keys. It leaves out versions that are older than
// the oldest wanted one, but never the newest version.
const dumpKeys = `SELECT ` + versionColumns + ` FROM (
		SELECT x.*, k.oldest FROM unnest($2::text[], $3::text[], $4::int8[]) k(typ, id, oldest)
		CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.typ = k.typ AND x.id = k.id OFFSET 0) x
	) r CROSS JOIN LATERAL (
		SELECT h.ver, h.rid, h.upd, h.until, h.method, h.deleted, h.body FROM hist h WHERE h.site = $1 AND h.self = r.self AND h.ver >= r.oldest AND r.ver > 1
		UNION ALL SELECT r.ver, r.rid, r.upd, 9223372036854775807, r.method, r.deleted, r.body
	) v ORDER BY r.typ, r.id`

// headColumns are pageColumns with an empty body, and the number of superseded versions.
const headColumns = `r.typ, r.id, r.spelling, r.rid, r.self, r.ver, r.upd, r.ixsum, r.method, r.deleted, r.claims, ''::bytea AS body, r.metadata, TRUE,
	(SELECT count(*) FROM hist h WHERE h.site = r.site AND h.self = r.self)`

// dumpHeads selects the newest versions of a page of records.
const dumpHeads = `SELECT ` + headColumns + `
	FROM res r WHERE r.site = $1 AND (r.typ, r.id) > ($2, $3) AND r.typ <> $4 AND r.upd >= $5 ORDER BY r.typ, r.id LIMIT $6`

// dumpHeadKeys is dumpHeads for the records with given keys.
const dumpHeadKeys = `SELECT ` + headColumns + ` FROM unnest($2::text[], $3::text[]) k(typ, id)
	CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.typ = k.typ AND x.id = k.id OFFSET 0) r ORDER BY r.typ, r.id`

// Dump implements store.Archive.
func (s *Store) Dump(ctx context.Context, query store.DumpQuery) (store.DumpPage, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.share.acquire(ctx); err != nil {
		return store.DumpPage{}, storeError("dump records", err)
	}
	defer s.share.release()
	if query.Heads {
		return s.dumpHeads(ctx, query)
	}
	found, err := s.dumped(ctx, query, dumpPage, dumpKeys)
	if err != nil {
		return store.DumpPage{}, queryError("dump records", err)
	}
	defer found.Close()
	page := dumpBuilder{now: s.dumpTime()}
	for found.Next() {
		full, err := page.add(columnsOf(found), query.MaxBytes)
		if err != nil {
			return store.DumpPage{}, queryError("dump records", err)
		}
		if full {
			// Close would receive the other rows of the statement, which can be many times the page. A cancelled
			// statement costs its connection, so it is cancelled only if most of its records are not on the page.
			if len(page.ends) < query.MaxRecords/2 {
				cancel()
			}
			return store.DumpPage{Records: page.records(), More: true}, nil
		}
	}
	records := page.records()
	return store.DumpPage{Records: records, More: len(records) == query.MaxRecords && query.Keys == nil}, queryError("dump records", found.Err())
}

// dumped sends the statement of a page: byPage, or byKeys if the query has keys.
func (s *Store) dumped(ctx context.Context, query store.DumpQuery, byPage, byKeys string) (pgx.Rows, error) {
	if query.Keys == nil {
		since := int64(0)
		if !query.Since.IsZero() {
			since = query.Since.Truncate(time.Millisecond).UnixMilli()
		}
		return s.pool.Query(ctx, byPage, s.site, query.After.Type, foldID(query.After.ID), store.JobType, since, query.MaxRecords)
	}
	var types, ids []string
	var oldest []int64
	for i, key := range query.Keys {
		if key.Compare(query.After) > 0 && key.Type != store.JobType {
			types, ids, oldest = append(types, key.Type), append(ids, foldID(key.ID)), append(oldest, query.OldestOf(i))
		}
	}
	if query.Heads {
		return s.pool.Query(ctx, byKeys, s.site, types, ids)
	}
	return s.pool.Query(ctx, byKeys, s.site, types, ids, oldest)
}

// dumpHeads returns a page of newest versions without bodies (DumpQuery.Heads).
func (s *Store) dumpHeads(ctx context.Context, query store.DumpQuery) (store.DumpPage, error) {
	found, err := s.dumped(ctx, query, dumpHeads, dumpHeadKeys)
	if err != nil {
		return store.DumpPage{}, queryError("dump records", err)
	}
	defer found.Close()
	var page store.DumpPage
	now := s.dumpTime()
	for found.Next() {
		var at state
		columns := columnsOf(found)
		if _, err := at.scan(columns, &texts{}); err != nil {
			return store.DumpPage{}, queryError("dump records", err)
		}
		superseded := columns.int64()
		if columns.err != nil {
			return store.DumpPage{}, queryError("dump records", columns.err)
		}
		head := s.record(&at)
		head.UID, head.Revision, head.Claims = "", "", store.ActiveClaims(head.Claims, now)
		page.Records = append(page.Records, store.Dumped{Key: head.Key, Versions: []store.Record{head}, Superseded: superseded})
	}
	page.More = len(page.Records) == query.MaxRecords && query.Keys == nil
	return page, queryError("dump records", found.Err())
}

// dumpTime returns the current time. Claims that have expired by then are left out.
func (s *Store) dumpTime() time.Time {
	if s.now != nil {
		return s.now()
	}
	return time.Now()
}
