package postgres

import (
	"context"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

var _ store.Archive = (*Store)(nil)

// dumpPage selects the versions of a page of records, in the order of a dump. It is one statement,
// so that each record is in the state of one moment.
const dumpPage = `SELECT ` + versionColumns + ` FROM (
		SELECT * FROM res x WHERE x.site = $1 AND (x.typ, x.id) > ($2, $3) AND x.typ <> $4 AND x.upd >= $5 ORDER BY x.typ, x.id LIMIT $6
	) r CROSS JOIN LATERAL (
		SELECT h.ver, h.rid, h.upd, h.until, h.method, h.deleted, h.body FROM hist h WHERE h.site = $1 AND h.self = r.self
		UNION ALL SELECT r.ver, r.rid, r.upd, 9223372036854775807, r.method, r.deleted, r.body
	) v ORDER BY r.typ, r.id, v.ver`

// Dump implements store.Archive.
func (s *Store) Dump(ctx context.Context, query store.DumpQuery) (store.DumpPage, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.share.acquire(ctx); err != nil {
		return store.DumpPage{}, storeError("dump records", err)
	}
	defer s.share.release()
	since := int64(0)
	if !query.Since.IsZero() {
		since = query.Since.Truncate(time.Millisecond).UnixMilli()
	}
	found, err := s.pool.Query(ctx, dumpPage, s.site, query.After.Type, foldID(query.After.ID), store.JobType, since, query.MaxRecords)
	if err != nil {
		return store.DumpPage{}, dumpError(err)
	}
	defer found.Close()
	var page store.DumpPage
	size, now := 0, time.Now()
	if s.now != nil {
		now = s.now()
	}
	for found.Next() {
		version, err := s.scanVersion(columnsOf(found))
		if err != nil {
			return store.DumpPage{}, dumpError(err)
		}
		version.UID, version.Revision, version.Claims = "", "", store.ActiveClaims(version.Claims, now)
		last := len(page.Records) - 1
		if last >= 0 && page.Records[last].Key == version.Key {
			page.Records[last].Versions = append(page.Records[last].Versions, version)
		} else {
			if size > query.MaxBytes {
				page.More = true
				return page, nil
			}
			page.Records = append(page.Records, store.Dumped{Key: version.Key, Versions: []store.Record{version}})
		}
		size += len(version.Body.JSON)
	}
	page.More = len(page.Records) == query.MaxRecords
	return page, dumpError(found.Err())
}

func dumpError(err error) error {
	if isQueryLimit(err) {
		return store.ErrQueryTimeout
	}
	return storeError("dump records", err)
}
