package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-health/paddock/apiserver/store"
)

// unlabelled selects the superseded versions and tombstones of some records that have no labels,
// because a release without labels wrote them. The oldest version of each record comes first. A
// tombstone whose version before it is missing is not selected: it cannot be labelled, and would
// count towards the limit.
const unlabelled = `SELECT x.typ, x.self, x.ver, x.deleted, true, x.body FROM hist x WHERE x.site = $1 AND x.self = ANY($2) AND x.labelled IS NULL
		AND (NOT x.deleted OR EXISTS (SELECT FROM hist p WHERE p.site = $1 AND p.self = x.self AND p.ver = x.ver - 1))
	UNION ALL SELECT x.typ, x.self, x.ver, true, false, x.body FROM res x WHERE x.site = $1 AND x.self = ANY($2) AND x.deleted AND x.labelled IS NULL
		AND EXISTS (SELECT FROM hist p WHERE p.site = $1 AND p.self = x.self AND p.ver = x.ver - 1)
	ORDER BY 2, 3 LIMIT $3`

// The statements that label one version. A tombstone gets the labels of the version before it. If
// that version is missing or has no labels, the tombstone remains unlabelled, and thus hidden from
// callers with restricted access.
const (
	labelPastTombstone = `UPDATE hist x SET labelled = p.labelled, labels = p.labels, links = p.links FROM hist p
		WHERE x.site = $1 AND x.self = $2 AND x.ver = $3 AND p.site = $1 AND p.self = $2 AND p.ver = $3 - 1 AND p.labelled IS NOT NULL`
	labelTombstone = `UPDATE res x SET labelled = x.ixsum & 2147483647, labels = p.labels, links = p.links FROM hist p
		WHERE x.site = $1 AND x.self = $2 AND x.ver = $3 AND x.deleted AND p.site = $1 AND p.self = $2 AND p.ver = $3 - 1 AND p.labelled IS NOT NULL`
	labelPastVersion = `UPDATE hist SET labelled = 0, labels = $4, links = $5 WHERE site = $1 AND self = $2 AND ver = $3`
)

// labelPast adds labels to those superseded versions and tombstones of some records that have none.
// It returns the number of versions that it changed.
func (s *Store) labelPast(ctx context.Context, keys []store.Key) (changed int64, err error) {
	selves := make([]int64, len(keys))
	for i, key := range keys {
		selves[i] = s.hash.Self(key.Type, key.ID)
	}
	for {
		batch, err := s.labelBatch(ctx, keys, selves)
		if err != nil || batch.Len() == 0 {
			return changed, storeError("add labels to superseded versions", err)
		}
		before := changed
		for _, query := range batch.QueuedQueries {
			query.Exec(func(tag pgconn.CommandTag) error {
				changed += tag.RowsAffected()
				return nil
			})
		}
		if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
			return changed, storeError("add labels to superseded versions", err)
		}
		if changed == before { // no version that is left can be labelled
			return changed, nil
		}
	}
}

// labelBatch returns the statements that label up to reindexBatch unlabelled versions of the
// records. selves are the hashes of keys, in the same order.
func (s *Store) labelBatch(ctx context.Context, keys []store.Key, selves []int64) (*pgx.Batch, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	found, err := s.pool.Query(ctx, unlabelled, s.site, selves, reindexBatch)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	batch := &pgx.Batch{}
	for found.Next() {
		c := columnsOf(found)
		typeName, self, version, deleted, past, packed := string(c.text()), c.int64(), c.int64(), c.bool(), c.bool(), c.bytes()
		if c.err != nil {
			return nil, c.err
		}
		switch {
		case deleted && past:
			batch.Queue(labelPastTombstone, s.site, self, version)
		case deleted:
			batch.Queue(labelTombstone, s.site, self, version)
		default:
			body, err := unpackBody(packed)
			if err != nil {
				return nil, decodeError(keys[slices.Index(selves, self)], version, err)
			}
			labels, links := s.index.Labels(typeName, s.index.Extractor.Extract(typeName, body.JSON))
			batch.Queue(labelPastVersion, s.site, self, version, labels, links)
		}
	}
	return batch, found.Err()
}
