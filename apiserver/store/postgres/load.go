package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// ErrExists means that one of the records to Load exists already, live or as a tombstone, or that
// Load got a record twice.
var ErrExists = errors.New("a record to load exists already, or is in the load twice")

// loadTimeouts is the maximum duration of a Load, a Restore or the transaction of a batch of Reindex,
// in multiples of Options.QueryTimeout. At the limit the transaction fails and stores nothing.
const loadTimeouts = 10

// setStatementTimeout sets the statement_timeout of a transaction to $2 milliseconds
// (loadTimeoutMillis).
const setStatementTimeout = `SELECT set_config('statement_timeout', $2, true) FROM sites WHERE site = $1`

func (s *Store) loadTimeoutMillis() string {
	return strconv.FormatInt((loadTimeouts * s.timeout).Milliseconds(), 10)
}

// Load stores new records, all or none. It is faster than Write, and made for imports in portions
// of some thousand records. It accepts only Puts with a type and id in valid UTF-8 without NUL, and
// without claims, metadata, events or preconditions. It does not check Op.Requires. Errors:
// ErrExists, store.ErrMoving, store.ErrUnavailable.
func (s *Store) Load(ctx context.Context, ops []store.Op) error {
	err := s.loadOnce(ctx, ops)
	if s.lostEarlier(ctx, err) {
		err = s.loadOnce(ctx, ops)
	}
	return err
}

func (s *Store) loadOnce(ctx context.Context, ops []store.Op) error {
	all, paths := make([]indexrow.Rows, len(ops)), []indexrow.ReferencePath{}
	for i, op := range ops {
		if op.Kind != store.Put || op.Claims != nil || op.Metadata != nil || op.Events != nil || !op.If.IsZero() || !isStorable(op.Key.Type) || !isStorable(op.Key.ID) {
			return fmt.Errorf("load record %s/%s: Load accepts only a Put with a valid type and id, and without claims, metadata, events or preconditions", op.Key.Type, op.Key.ID)
		}
		all[i] = s.index.Rows(op.Key.Type, op.Body)
		paths = append(paths, all[i].Paths...)
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeouts*s.timeout)
	defer cancel()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		records, rids, err := s.recordRows(ctx, tx, ops, all)
		if err != nil {
			return err
		}
		columns := []string{"site", "typ", "id", "spelling", "rid", "self", "ver", "upd", "ixsum", "method", "deleted", "marks", "labelled", "labels", "links", "vals", "sig", "sig2", "sig3", "present", "packed", "body"}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"res"}, columns, pgx.CopyFromRows(records)); err != nil {
			return err
		}
		if err := copyTables(ctx, tx, indexrow.CopyRows(s.site, rids, all)); err != nil {
			return err
		}
		if paths = s.unknownReferencePaths(paths); len(paths) == 0 {
			return nil
		}
		st := s.planIndex.Statement()
		_, err = tx.Exec(ctx, "WITH w AS (SELECT 1), "+indexrow.InsertPaths(st, paths)+" SELECT FROM w", st.Args...)
		return err
	})
	if hasCode(err, uniqueViolation) {
		return fmt.Errorf("load records: %w: %w", ErrExists, err)
	}
	if err != nil {
		return storeError("load records", err)
	}
	s.cacheReferencePaths(paths)
	s.analyzeIfGrown(ctx, len(ops))
	return nil
}

// copyTables copies rows into tables, one after the other.
func copyTables(ctx context.Context, tx pgx.Tx, tables []indexrow.CopiedRows) error {
	for _, t := range tables {
		if len(t.Rows) == 0 {
			continue
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{t.Table}, t.Columns, pgx.CopyFromRows(t.Rows)); err != nil {
			return err
		}
	}
	return nil
}

// recordRows returns the rows of the table res for new records, and their rids. It also sets the
// statement timeout of the transaction and takes the lock of a write (clock.go).
func (s *Store) recordRows(ctx context.Context, tx pgx.Tx, ops []store.Op, all []indexrow.Rows) (records [][]any, rids []int64, err error) {
	batch := &pgx.Batch{}
	batch.Queue(setStatementTimeout, s.site, s.loadTimeoutMillis())
	now := make([]time.Time, len(ops))
	for i := range ops {
		if s.now != nil || i == 0 {
			s.queueBeginWrite(batch, &now[i])
		}
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, nil, err
	}
	for i, op := range ops {
		if s.now == nil {
			now[i] = now[0]
		}
		p, err := s.decide(op, nil, now[i])
		if err != nil {
			return nil, nil, err
		}
		at, sum := &p.next, all[i].Sum()
		rids = append(rids, at.rid)
		records = append(records, []any{
			s.site, op.Key.Type, at.id, spelling(at), at.rid, at.self, at.version, at.updated.UnixMilli(), sum,
			methodNumber(at.method), false, nonNil(all[i].Marks), indexrow.LabelledColumn(sum), all[i].Labels, all[i].Links, all[i].Vals, all[i].Signature[0], all[i].Signature[1], all[i].Signature[2], all[i].Present, indexrow.LabelledColumn(sum), packBody(at.body),
		})
	}
	return records, rids, nil
}
