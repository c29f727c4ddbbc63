package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
)

// ErrExists says that a record to be loaded is there already.
var ErrExists = errors.New("a record is there already")

// loadTimeouts is how many times longer than another call a load may take.
const loadTimeouts = 10

// Load stores records that are new, all of them or none, faster than Write does: for
// imports, in portions of some thousands. It takes Puts without claims and preconditions.
// Errors: ErrExists, store.ErrUnavailable.
func (s *Site) Load(ctx context.Context, ops []store.Op) error {
	rids, all, paths := make([]int64, len(ops)), make([]rows, len(ops)), []path{}
	records := make([][]any, len(ops))
	for i, op := range ops {
		if op.Kind != store.Put || op.Claims != nil || op.If != (store.Precondition{}) || !storable(op.Key.Type) || !storable(op.Key.ID) {
			return fmt.Errorf("load record %s/%s: only plain puts can be loaded", op.Key.Type, op.Key.ID)
		}
		at := s.first(op, s.clock())
		all[i] = s.index.rows(op.Key.Type, op.Body)
		rids[i], at.sum = at.rid, all[i].sum()
		paths = append(paths, all[i].paths...)
		records[i] = []any{
			s.site, op.Key.Type, at.id, spelling(&at), at.rid, at.self, at.version, at.updated.UnixMilli(), at.sum,
			methodNumber(at.method), false, nonNil(all[i].marks), packBody(at.body),
		}
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeouts*s.timeout)
	defer cancel()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
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
		_, err := tx.Exec(ctx, "WITH w AS (SELECT 1), "+insertPaths(st, paths)+" SELECT FROM w", st.args...)
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
