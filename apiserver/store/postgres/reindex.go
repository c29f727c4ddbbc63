package postgres

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// reindexBatch is the number of records that Reindex reads between two reports. It reindexes the
// outdated records among them in one transaction.
const reindexBatch = 1000

// Reindexed is the progress of a Reindex.
type Reindexed struct {
	// After is the key of the last record that was read.
	After store.Key
	// Read is the number of records that were read. Changed is the number of records whose index rows
	// were updated, and of superseded versions and tombstones whose labels were updated.
	Read, Changed int64
}

// Reindex updates the index rows of records that a release with other results of store.Extractor
// wrote. It also adds the texts, the labels and the bits of common codes that earlier releases did not
// store. It can run during reads and writes. It starts after a key, or at the first record for the zero
// key, and calls report after each batch of 1000 records. An interrupted Reindex can resume at
// Reindexed.After. When Reindex returns nil, searches by newly extracted values find all records, except
// those that an earlier release has written in the meantime. Errors: store.ErrMoving,
// store.ErrUnavailable.
func (s *Store) Reindex(ctx context.Context, after store.Key, report func(Reindexed)) error {
	done := Reindexed{After: after}
	for {
		keys, outdated, err := s.outdatedAfter(ctx, done.After)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return nil
		}
		err = s.reindexRecords(ctx, outdated)
		if s.lostEarlier(ctx, err) {
			err = s.reindexRecords(ctx, outdated)
		}
		if err != nil {
			return err
		}
		labelled, err := s.labelPast(ctx, keys)
		if err != nil {
			return err
		}
		done.After = keys[len(keys)-1]
		done.Read += int64(len(keys))
		done.Changed += int64(len(outdated)) + labelled
		report(done)
	}
}

// outdatedAfter returns the keys of a batch of records after a key, and the selves of those whose
// index rows are outdated.
func (s *Store) outdatedAfter(ctx context.Context, after store.Key) (keys []store.Key, outdated []int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	found, err := s.pool.Query(ctx, `SELECT `+stateColumns+`, r.present < 0 FROM res r WHERE r.site = $1 AND (r.typ, r.id) > ($2, $3)
		ORDER BY r.typ, r.id LIMIT $4`, s.site, after.Type, foldID(after.ID), reindexBatch)
	if err != nil {
		return nil, nil, storeError("find records to reindex", err)
	}
	defer found.Close()
	for found.Next() {
		c := columnsOf(found)
		at, err := scanState(c)
		hasCommonBits := c.bool()
		if err = cmp.Or(err, c.err); err != nil {
			return nil, nil, storeError("find records to reindex", err)
		}
		keys = append(keys, at.key)
		if s.needsReindex(at) || !hasCommonBits && !at.deleted {
			outdated = append(outdated, at.self)
		}
	}
	return keys, outdated, storeError("find records to reindex", found.Err())
}

// reindexRecords replaces the index rows of records, or adds those of ix_text, in one transaction
// that locks the records. It skips records that need neither any more. The versions of the records do
// not change.
func (s *Store) reindexRecords(ctx context.Context, selves []int64) error {
	if len(selves) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeouts*s.timeout)
	defer cancel()
	slices.Sort(selves) // All writers lock records in this order, to avoid deadlocks.
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setStatementTimeout, s.site, s.loadTimeoutMillis()); err != nil {
			return err
		}
		found, err := tx.Query(ctx, lockRecords, s.site, selves)
		if err != nil {
			return err
		}
		states, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (*state, error) { return scanState(columnsOf(row)) })
		if err != nil {
			return err
		}
		batch, reindexed := &pgx.Batch{}, &pgx.Batch{}
		var rids []int64
		hasTexts := false
		for _, at := range states {
			extracted, stored, outdated := s.indexRows(at)
			switch {
			case outdated:
				rids, stored = append(rids, at.rid), indexrow.Rows{}
				hasTexts = hasTexts || at.isPacked
			case at.isPacked || at.deleted:
				continue
			}
			s.queueReindexed(reindexed, at, &extracted, &stored)
		}
		if len(rids) > 0 {
			for _, sql := range s.earlier().RemoveAll(hasTexts) {
				batch.Queue(sql, s.site, rids)
			}
		}
		batch.QueuedQueries = append(batch.QueuedQueries, reindexed.QueuedQueries...)
		s.queueCommonBits(batch, states)
		return tx.SendBatch(ctx, batch).Close()
	})
	return storeError("reindex records", err)
}

// queueCommonBits queues the statement that adds the bits of common codes to those of some records that
// lack them. Their marks show which codes they have.
func (s *Store) queueCommonBits(batch *pgx.Batch, states []*state) {
	var types []string
	var selves []int64
	for _, at := range states {
		types, selves = append(types, at.key.Type), append(selves, at.self)
	}
	slices.Sort(types)
	typ, mark, bit := indexrow.Split3(s.index.CommonMarks(slices.Compact(types)), func(m indexrow.CommonMark) (string, int64, int64) { return m.Type, m.Mark, m.Bit })
	const add = `UPDATE res r SET present = r.present | $3 | COALESCE((SELECT bit_or(c.bit) FROM unnest($4::text[], $5::int8[], $6::int8[]) c(typ, mark, bit)
			WHERE c.typ = r.typ AND c.mark = ANY(r.marks)), 0)
		WHERE r.site = $1 AND r.self = ANY($2) AND r.present >= 0 AND NOT r.deleted`
	batch.Queue(add, s.site, selves, indexrow.HasCommonBits, typ, mark, bit)
}

// needsReindex reports whether the index rows of a record are not those that this release writes.
func (s *Store) needsReindex(at *state) bool {
	_, _, outdated := s.indexRows(at)
	return outdated || !at.isPacked && !at.deleted
}

// queueReindexed queues the statement that updates the record's row of res and inserts the index rows
// in fresh that are not in stored.
func (s *Store) queueReindexed(batch *pgx.Batch, at *state, fresh, stored *indexrow.Rows) {
	added := fresh.Without(stored)
	st, sum := s.planIndex.Statement(), fresh.Sum()
	parts := []string{"w AS (UPDATE res SET ixsum = " + st.Arg(sum) + ", marks = " + st.Arg(nonNil(fresh.Marks)) +
		", labelled = " + st.Arg(indexrow.LabelledColumn(sum)) + ", labels = " + st.Arg(fresh.Labels) + ", links = " + st.Arg(fresh.Links) +
		", vals = " + st.Arg(nonNilBytes(fresh.Vals)) + ", sig = " + st.Arg(fresh.Signature[0]) + ", sig2 = " + st.Arg(fresh.Signature[1]) + ", sig3 = " + st.Arg(fresh.Signature[2]) + ", present = " + st.Arg(fresh.Present) + ", packed = " + st.Arg(indexrow.LabelledColumn(sum)) +
		" WHERE site = $1 AND self = " + st.Arg(at.self) + " RETURNING rid)"}
	parts = append(parts, added.Insert(st, "(SELECT rid FROM w)", "w")...)
	if len(fresh.Paths) > 0 {
		parts = append(parts, indexrow.InsertPaths(st, fresh.Paths))
	}
	batch.Queue("WITH "+strings.Join(parts, ", ")+" SELECT FROM w", st.Args...)
}
