package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
)

// ErrExists says that a record to be loaded is there already.
var ErrExists = errors.New("a record is there already")

// loadTimeouts is how many times longer than another call a load may take.
const loadTimeouts = 10

// patience gives the statements of a transaction as long as a load may take.
const patience = `SELECT set_config('statement_timeout', $2, true) FROM sites WHERE site = $1`

func (s *Site) patient() string {
	return strconv.FormatInt((loadTimeouts * s.timeout).Milliseconds(), 10)
}

// Load stores records that are new, all of them or none, faster than Write does: for
// imports, in portions of some thousands. It takes Puts without claims, metadata and preconditions.
// Errors: ErrExists, store.ErrUnavailable.
func (s *Site) Load(ctx context.Context, ops []store.Op) error {
	all, paths := make([]rows, len(ops)), []path{}
	for i, op := range ops {
		if op.Kind != store.Put || op.Claims != nil || op.Metadata != nil || op.If != (store.Precondition{}) || !storable(op.Key.Type) || !storable(op.Key.ID) {
			return fmt.Errorf("load record %s/%s: only plain puts can be loaded", op.Key.Type, op.Key.ID)
		}
		all[i] = s.index.rows(op.Key.Type, op.Body)
		paths = append(paths, all[i].paths...)
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeouts*s.timeout)
	defer cancel()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		records, rids, err := s.loaded(ctx, tx, ops, all)
		if err != nil {
			return err
		}
		columns := []string{"site", "typ", "id", "spelling", "rid", "self", "ver", "upd", "ixsum", "method", "deleted", "marks", "body"}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"res"}, columns, pgx.CopyFromRows(records)); err != nil {
			return err
		}
		tables := copyFrom(s.site, rids, all)
		for _, name := range indexTables {
			if t := tables[name]; len(t.rows) > 0 {
				if _, err := tx.CopyFrom(ctx, pgx.Identifier{name}, t.columns, pgx.CopyFromRows(t.rows)); err != nil {
					return err
				}
			}
		}
		if paths = s.newPaths(paths); len(paths) == 0 {
			return nil
		}
		st := s.statement()
		_, err = tx.Exec(ctx, "WITH w AS (SELECT 1), "+insertPaths(st, paths)+" SELECT FROM w", st.args...)
		return err
	})
	if hasCode(err, uniqueViolation) {
		return fmt.Errorf("load records: %w: %w", ErrExists, err)
	}
	if err != nil {
		return storeError("load records", err)
	}
	s.rememberPaths(paths)
	s.grown(ctx, len(ops))
	return nil
}

// loaded lists the rows of res of records that are new, and their rids.
func (s *Site) loaded(ctx context.Context, tx pgx.Tx, ops []store.Op, all []rows) (records [][]any, rids []int64, err error) {
	batch := &pgx.Batch{}
	batch.Queue(patience, s.site, s.patient())
	now := make([]time.Time, len(ops))
	for i := range ops {
		if s.now != nil || i == 0 {
			s.queueOpen(batch, &now[i])
		}
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, nil, err
	}
	for i, op := range ops {
		if s.now == nil {
			now[i] = now[0]
		}
		at := s.first(op, now[i])
		rids = append(rids, at.rid)
		records = append(records, []any{
			s.site, op.Key.Type, at.id, spelling(&at), at.rid, at.self, at.version, at.updated.UnixMilli(), all[i].sum(),
			methodNumber(at.method), false, nonNil(all[i].marks), packBody(at.body),
		})
	}
	return records, rids, nil
}
