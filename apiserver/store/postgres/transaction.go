package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// transaction is the state of a write of several operations, or of one operation that needs locks.
type transaction struct {
	site *Store
	now  time.Time
	// current has the newest version of each record after the operations so far. It is nil for a
	// record that does not exist.
	current        map[store.Key]*state
	claimTable     claimTable
	queue          []queuedStatement
	referencePaths []indexrow.ReferencePath
	// referenceLocks is the state of the operations that depend on other records.
	referenceLocks referenceLocks
	events         transactionEvents
	entry          writeEntry
	// erased are the subjects of the events that the transaction deletes, in lower case.
	erased map[string]bool
}

// queuedStatement is a statement to send at the end of the transaction. If mustChange is true, a
// result without rows means that the record has changed since it was read.
type queuedStatement struct {
	sql        string
	args       []any
	mustChange bool
}

const (
	// lockLines must be a statement of its own, so that the snapshots of later statements begin after
	// the locks were acquired.
	lockLines = `SELECT pg_advisory_xact_lock(s.site, l.line) FROM sites s CROSS JOIN LATERAL unnest($2::int4[]) WITH ORDINALITY l(line, n) WHERE s.site = $1`

	lockRecords = `SELECT ` + stateColumns + ` FROM unnest($2::int8[]) WITH ORDINALITY k(self, n)
		CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.self = k.self FOR UPDATE) r ORDER BY k.n`

	readClaims = `SELECT c.line, c.self, c.lo, c.hi, c.expires, r.typ, COALESCE(r.spelling, r.id)
		FROM claim c JOIN res r ON r.site = $1 AND r.self = c.self WHERE c.site = $1 AND c.line = ANY($2::int8[])`
)

// lock takes the locks that the operations need, and reads the records and claims that these locks
// protect. To avoid deadlocks, all writers take locks in the same order.
func (t *transaction) lock(ctx context.Context, tx pgx.Tx, ops []store.Op) error {
	t.current = map[store.Key]*state{}
	for _, op := range ops {
		t.current[op.Key.Folded()] = nil
	}
	t.claimTable = claimTable{hash: t.site.hash, lines: linesOf(ops)}
	batch := &pgx.Batch{}
	t.site.queueBeginWrite(batch, &t.now)
	if len(t.claimTable.lines) > 0 {
		t.queueClaimLocks(batch)
	}
	selves := make([]int64, 0, len(t.current))
	for key := range t.current {
		selves = append(selves, t.site.hash.Self(key.Type, key.ID))
	}
	slices.Sort(selves)
	if targets := t.requiredSelves(ops); len(targets) > 0 {
		t.queueLocksWithRequired(batch, selves, targets)
		return tx.SendBatch(ctx, batch).Close()
	}
	batch.Queue(lockRecords, t.site.site, selves).Query(func(found pgx.Rows) error {
		for found.Next() {
			at, err := scanState(columnsOf(found))
			if err != nil {
				return err
			}
			t.current[at.key.Folded()] = at
		}
		return found.Err()
	})
	return tx.SendBatch(ctx, batch).Close()
}

func (t *transaction) queueClaimLocks(batch *pgx.Batch) {
	hashes := make([]int64, len(t.claimTable.lines))
	locks := make([]int32, len(hashes))
	for i, line := range t.claimTable.lines {
		hashes[i] = t.site.hash.Line(line)
		locks[i] = int32(hashes[i])
	}
	slices.Sort(locks)
	batch.Queue(lockLines, t.site.site, locks)
	batch.Queue(readClaims, t.site.site, hashes).Query(func(found pgx.Rows) error {
		for found.Next() {
			var h claimRow
			if err := found.Scan(&h.line, &h.self, &h.from, &h.until, &h.expiry, &h.holder.Type, &h.holder.ID); err != nil {
				return err
			}
			t.claimTable.rows = append(t.claimTable.rows, h)
		}
		return found.Err()
	})
	// This removes the rows of expired claims. claimTable ignores such claims anyway.
	t.queue = append(t.queue, queuedStatement{
		sql:  `DELETE FROM claim WHERE site = $1 AND line = ANY($2::int8[]) AND expires <= floor(extract(epoch FROM now()) * 1e6)`,
		args: []any{t.site.site, hashes},
	})
}

// decide decides each operation on the state after the operations before it, and queues the
// statements of the operations.
func (t *transaction) decide(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	results := make([]store.Result, len(ops))
	for i, op := range ops {
		t.noteErased(op)
		key := op.Key.Folded()
		current := t.current[key]
		p, err := t.site.decide(op, current, t.now)
		if err != nil {
			return nil, err
		}
		if p.Action != store.ActionNone {
			if p.Action != store.ActionAnnotate { // an annotation does not change claims
				if err := t.claim(op, &p, current); err != nil {
					return nil, err
				}
			}
			t.entry = t.site.makeEntry(ctx, &p)
			t.write(&p, current)
			t.addEvents(op, &p)
		}
		results[i] = t.site.result(&p)
		switch p.Action {
		case store.ActionCreate, store.ActionUpdate, store.ActionAnnotate:
			next := p.next
			t.current[key] = &next
		case store.ActionPurge:
			t.current[key] = nil
		}
	}
	return results, t.checkRequired(ops, results)
}

// claim replaces or releases the claims of the record, if the operation does so.
func (t *transaction) claim(op store.Op, p *decision, current *state) error {
	if op.Kind != store.Put {
		if current != nil && len(current.claims) > 0 {
			t.claimTable.release(current.self)
			t.dropClaims(current.self)
		}
		return nil
	}
	if op.Claims == nil {
		return nil
	}
	if err := t.claimTable.set(&p.next, op.Claims, t.now); err != nil {
		return err
	}
	t.dropClaims(p.next.self)
	var mine []claimRow
	for _, row := range t.claimTable.rows {
		if row.self == p.next.self {
			mine = append(mine, row)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	lines, lows, highs := indexrow.Split3(mine, func(h claimRow) (int64, int64, int64) { return h.line, h.from, h.until })
	expiries, _, _ := indexrow.Split3(mine, func(h claimRow) (int64, int, int) { return h.expiry, 0, 0 })
	t.queue = append(t.queue, queuedStatement{
		sql: `INSERT INTO claim (site, self, line, lo, hi, expires)
			SELECT $1, $2, u.* FROM unnest($3::int8[], $4::int8[], $5::int8[], $6::int8[]) u ON CONFLICT DO NOTHING`,
		args: []any{t.site.site, p.next.self, lines, lows, highs, expiries},
	})
	return nil
}

func (t *transaction) dropClaims(self int64) {
	t.queue = append(t.queue, queuedStatement{sql: `DELETE FROM claim WHERE site = $1 AND self = $2`, args: []any{t.site.site, self}})
}

func (t *transaction) write(p *decision, current *state) {
	_, before, outdated := t.site.indexRows(current)
	if outdated && p.Action != store.ActionAnnotate {
		before = indexrow.Rows{}
		for _, sql := range t.site.earlier().RemoveAll(current.isPacked) {
			t.queue = append(t.queue, queuedStatement{sql: sql, args: []any{t.site.site, []int64{current.rid}}})
		}
	}
	e := t.site.edit(p, current, before, nil)
	e.entry = t.entry
	c := t.site.change(e, func(st *sqlplan.Statement, p *decision, _ *state) string { return knownTimeTable(st, p) })
	t.referencePaths = append(t.referencePaths, c.referencePaths...)
	t.queue = append(t.queue, queuedStatement{c.sql, c.statement.Args, true})
}

// apply deletes the events about erased records, and sends the queued statements. Errors: errStale,
// *store.ReferencedError.
func (t *transaction) apply(ctx context.Context, tx pgx.Tx) error {
	if err := t.eraseEvents(ctx, tx); err != nil {
		return fmt.Errorf("erase events: %w", err)
	}
	if len(t.queue) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	var stale error
	for _, q := range t.queue {
		queuedQuery := batch.Queue(q.sql, q.args...)
		if q.mustChange {
			queuedQuery.QueryRow(func(row pgx.Row) error {
				var rid, updated int64
				err := row.Scan(&rid, &updated)
				if errors.Is(err, pgx.ErrNoRows) {
					stale = errStale
					return nil
				}
				return err
			})
		}
	}
	t.queueEvents(batch)
	t.queueReferrers(batch)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("apply %d statements: %w", len(t.queue), errors.Join(stale, err))
	}
	if stale != nil {
		return stale
	}
	return t.checkUnreferenced()
}
