package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
)

// reindexPortion is how many records are looked at between two reports, and indexed anew in
// one transaction: the rows of an older extractor are looked for once for all of them.
const reindexPortion = 1000

// Reindexed is how far a Reindex has come: the last record it looked at, how many so far,
// and how many of them it indexed anew.
type Reindexed struct {
	After           store.Key
	Looked, Changed int64
}

// Reindex brings the index rows of records up to date that another extractor wrote. It
// runs beside reads and writes, goes on behind after, and tells report how far it is, from
// where it can be resumed. Searches by what is new are complete when it is done.
func (s *Site) Reindex(ctx context.Context, after store.Key, report func(Reindexed)) error {
	done := Reindexed{After: after}
	for {
		keys, outdated, err := s.outdatedBehind(ctx, done.After)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return nil
		}
		if err := s.reindexSome(ctx, outdated); err != nil {
			return err
		}
		done.After = keys[len(keys)-1]
		done.Looked += int64(len(keys))
		done.Changed += int64(len(outdated))
		report(done)
	}
}

// outdatedBehind lists the records behind a key, and those of them whose index rows are
// not what their bodies give today.
func (s *Site) outdatedBehind(ctx context.Context, after store.Key) (keys []store.Key, outdated []int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	found, err := s.pool.Query(ctx, `SELECT `+stateColumns+` FROM res r WHERE r.site = $1 AND (r.typ, r.id) > ($2, $3)
		ORDER BY r.typ, r.id LIMIT $4`, s.site, after.Type, foldID(after.ID), reindexPortion)
	if err != nil {
		return nil, nil, storeError("find records to reindex", err)
	}
	defer found.Close()
	for found.Next() {
		at, err := scanState(columnsOf(found))
		if err != nil {
			return nil, nil, storeError("find records to reindex", err)
		}
		keys = append(keys, at.key)
		if _, old := s.indexed(at); old {
			outdated = append(outdated, at.self)
		}
	}
	return keys, outdated, storeError("find records to reindex", found.Err())
}

// reindexSome writes the index rows of some records anew, under their locks. Their versions
// stay.
func (s *Site) reindexSome(ctx context.Context, selves []int64) error {
	if len(selves) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeouts*s.timeout)
	defer cancel()
	slices.Sort(selves) // the order in which all writers lock
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, patience, s.site, s.patient()); err != nil {
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
		states = slices.DeleteFunc(states, func(at *state) bool { _, old := s.indexed(at); return !old })
		rids := make([]int64, len(states))
		for i, at := range states {
			rids[i] = at.rid
		}
		batch := &pgx.Batch{}
		for _, sql := range removeAll {
			batch.Queue(sql, s.site, rids)
		}
		for _, at := range states {
			s.queueReindexed(batch, at)
		}
		return tx.SendBatch(ctx, batch).Close()
	})
	return storeError("reindex records", err)
}

func (s *Site) queueReindexed(batch *pgx.Batch, at *state) {
	fresh, _ := s.indexed(at)
	st := s.statement()
	parts := []string{"w AS (UPDATE res SET ixsum = " + st.arg(fresh.sum()) + ", marks = " + st.arg(nonNil(fresh.marks)) +
		" WHERE site = $1 AND self = " + st.arg(at.self) + " RETURNING 1)"}
	parts = append(parts, fresh.insert(st, st.arg(at.rid)+"::int8", "w")...)
	if len(fresh.paths) > 0 {
		parts = append(parts, insertPaths(st, fresh.paths))
	}
	batch.Queue("WITH "+strings.Join(parts, ", ")+" SELECT FROM w", st.args...)
}
