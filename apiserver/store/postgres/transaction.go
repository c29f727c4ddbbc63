package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
)

// transaction is several operations on their way, or one with claims.
type transaction struct {
	site *Site
	now  time.Time
	// current are the newest versions of the records, as the operations so far leave them;
	// nil where there is none.
	current map[store.Key]*state
	ledger  ledger
	queue   []queued
	paths   []path
	// standing is what is known of records that operations depend on.
	standing standing
}

// queued is a statement; mustChange tells that it says how many records it changed.
type queued struct {
	sql        string
	args       []any
	mustChange bool
}

func foldKey(key store.Key) store.Key { return store.Key{Type: key.Type, ID: foldID(key.ID)} }

const (
	// The lock is a statement before those that read: their snapshots begin when it is held.
	lockLines = `SELECT pg_advisory_xact_lock(s.site, l.line) FROM sites s CROSS JOIN LATERAL unnest($2::int4[]) WITH ORDINALITY l(line, n) WHERE s.site = $1`

	lockRecords = `SELECT ` + stateColumns + ` FROM unnest($2::int8[]) WITH ORDINALITY k(self, n)
		CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.self = k.self FOR UPDATE) r ORDER BY k.n`

	readClaims = `SELECT c.line, c.self, c.lo, c.hi, c.expires, r.typ, COALESCE(r.spelling, r.id)
		FROM claim c JOIN res r ON r.site = $1 AND r.self = c.self WHERE c.site = $1 AND c.line = ANY($2::int8[])`
)

// lock takes the locks, in an order that all writers keep, and reads what they guard.
func (t *transaction) lock(ctx context.Context, tx pgx.Tx, ops []store.Op) error {
	t.current = map[store.Key]*state{}
	for _, op := range ops {
		t.current[foldKey(op.Key)] = nil
	}
	t.ledger = ledger{hash: t.site.hash, lines: linesOf(ops)}
	batch := &pgx.Batch{}
	t.site.queueOpen(batch, &t.now)
	if len(t.ledger.lines) > 0 {
		t.queueLines(batch)
	}
	selves := make([]int64, 0, len(t.current))
	for key := range t.current {
		selves = append(selves, t.site.hash.self(key.Type, key.ID))
	}
	slices.Sort(selves)
	if targets := t.targets(ops); len(targets) > 0 {
		t.queueLocks(batch, selves, targets)
		return tx.SendBatch(ctx, batch).Close()
	}
	batch.Queue(lockRecords, t.site.site, selves).Query(func(found pgx.Rows) error {
		for found.Next() {
			at, err := scanState(columnsOf(found))
			if err != nil {
				return err
			}
			t.current[foldKey(at.key)] = at
		}
		return found.Err()
	})
	return tx.SendBatch(ctx, batch).Close()
}

func (t *transaction) queueLines(batch *pgx.Batch) {
	hashes := make([]int64, len(t.ledger.lines))
	locks := make([]int32, len(hashes))
	for i, line := range t.ledger.lines {
		hashes[i] = t.site.hash.line(line)
		locks[i] = int32(hashes[i])
	}
	slices.Sort(locks)
	batch.Queue(lockLines, t.site.site, locks)
	batch.Queue(readClaims, t.site.site, hashes).Query(func(found pgx.Rows) error {
		for found.Next() {
			var h held
			if err := found.Scan(&h.line, &h.self, &h.from, &h.until, &h.expiry, &h.holder.Type, &h.holder.ID); err != nil {
				return err
			}
			t.ledger.rows = append(t.ledger.rows, h)
		}
		return found.Err()
	})
	// What has ended by itself; the ledger leaves it out by the time of the write.
	t.queue = append(t.queue, queued{
		sql:  `DELETE FROM claim WHERE site = $1 AND line = ANY($2::int8[]) AND expires <= floor(extract(epoch FROM now()) * 1e6)`,
		args: []any{t.site.site, hashes},
	})
}

// decide works out all operations, each on what the ones before it leave.
func (t *transaction) decide(ops []store.Op) ([]store.Result, error) {
	results := make([]store.Result, len(ops))
	for i, op := range ops {
		key := foldKey(op.Key)
		current := t.current[key]
		p, err := t.site.decide(op, current, t.now)
		if err != nil {
			return nil, err
		}
		if p.action != doNothing {
			if p.action != doAnnotate { // which claims nothing else
				if err := t.claim(op, &p, current); err != nil {
					return nil, err
				}
			}
			t.write(&p, current)
		}
		results[i] = t.site.result(&p, current)
		switch p.action {
		case doCreate, doUpdate, doAnnotate:
			next := p.next
			t.current[key] = &next
		case doPurge:
			t.current[key] = nil
		}
	}
	return results, t.checkRequired(ops, results)
}

// claim changes what the record holds, where the operation says so.
func (t *transaction) claim(op store.Op, p *plan, current *state) error {
	if op.Kind != store.Put {
		if current != nil && len(current.claims) > 0 {
			t.ledger.release(current.self)
			t.dropClaims(current.self)
		}
		return nil
	}
	if op.Claims == nil {
		return nil
	}
	if err := t.ledger.change(&p.next, op.Claims, t.now); err != nil {
		return err
	}
	t.dropClaims(p.next.self)
	var mine []held
	for _, row := range t.ledger.rows {
		if row.self == p.next.self {
			mine = append(mine, row)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	lines, lows, highs := split3(mine, func(h held) (int64, int64, int64) { return h.line, h.from, h.until })
	expiries, _, _ := split3(mine, func(h held) (int64, int, int) { return h.expiry, 0, 0 })
	t.queue = append(t.queue, queued{
		sql: `INSERT INTO claim (site, self, line, lo, hi, expires)
			SELECT $1, $2, u.* FROM unnest($3::int8[], $4::int8[], $5::int8[], $6::int8[]) u ON CONFLICT DO NOTHING`,
		args: []any{t.site.site, p.next.self, lines, lows, highs, expiries},
	})
	return nil
}

func (t *transaction) dropClaims(self int64) {
	t.queue = append(t.queue, queued{sql: `DELETE FROM claim WHERE site = $1 AND self = $2`, args: []any{t.site.site, self}})
}

// write queues the change of a record.
func (t *transaction) write(p *plan, current *state) {
	before, outdated := t.site.indexed(current)
	if outdated && p.action != doAnnotate {
		before = rows{}
		for _, sql := range removeAll {
			t.queue = append(t.queue, queued{sql: sql, args: []any{t.site.site, []int64{current.rid}}})
		}
	}
	c := t.site.change(p, current, before, func(st *statement, p *plan, _ *state) string { return stamped(st, p) })
	t.paths = append(t.paths, c.paths...)
	t.queue = append(t.queue, queued{c.sql, c.statement.args, true})
}

// apply sends what is queued.
func (t *transaction) apply(ctx context.Context, tx pgx.Tx) error {
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
	t.queueReferrers(batch)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("apply %d statements: %w", len(t.queue), errors.Join(stale, err))
	}
	if stale != nil {
		return stale
	}
	return t.checkUnreferenced()
}
