package postgres

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
)

// SetBounds lets tests meet with few records what lists of many records meet.
func (s *Site) SetBounds(few, some, many, ranked int) { s.bounds = bounds{few, some, many, ranked} }

// Through is the site by way of another pool.
func (s *Site) Through(pool *pgxpool.Pool) *Site {
	return &Site{pool: pool, site: s.site, hash: s.hash, now: s.now, timeout: s.timeout, index: s.index, bounds: s.bounds, paths: map[path]struct{}{}}
}

// SetRenewPause sets how long Renew waits between passes.
func (s *Site) SetRenewPause(pause time.Duration) { s.renewPause = pause }

// Prepared is the statement that creates a record, as it is when all is decided.
func (s *Site) Prepared(op store.Op, now time.Time) (sql string, args []any) {
	p := plan{action: doCreate, next: s.first(op, now)}
	c := s.change(&p, nil, rows{}, func(st *statement, p *plan, _ *state) string { return stamped(st, p) })
	return c.sql, c.statement.args
}
