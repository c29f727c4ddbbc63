package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
)

// SetBounds lets tests meet with few records what lists of many records meet.
func (s *Site) SetBounds(few, some, many, ranked int) { s.bounds = bounds{few, some, many, ranked} }

// Entries is how many entries a parameter is thought to have.
func (s *Site) Entries(typeName, param string) float64 {
	s.sizes.mu.Lock()
	defer s.sizes.mu.Unlock()
	return s.sizes.entries[s.hash.param(typeName, param)]
}

// SetEntries sets how many entries a parameter is thought to have.
func (s *Site) SetEntries(typeName, param string, n float64) {
	s.sizes.mu.Lock()
	defer s.sizes.mu.Unlock()
	s.sizes.at, s.sizes.entries = time.Now(), map[int64]float64{s.hash.param(typeName, param): n}
}

// Shares reports whether a page would be asked for together with others.
func (s *Site) Shares(ctx context.Context, query store.Query) (bool, error) {
	r := &reader{site: s, ctx: ctx, query: query, order: order.Of(query)}
	page := r.page(r.compiler(), query.Types[0])
	_, err := page.branches()
	return page.short(), err
}

// Through is the site by way of another pool.
func (s *Site) Through(pool *pgxpool.Pool) *Site {
	return &Site{
		pool: pool, site: s.site, hash: s.hash, now: s.now, timeout: s.timeout, index: s.index, bounds: s.bounds, paths: map[path]struct{}{},
		questions: newQuestions(pool, s.timeout), mostOnPage: s.mostOnPage, share: newShare(pool.Config().MaxConns),
	}
}

// SetMostOnPage sets how many bytes there are on a page.
func (s *Site) SetMostOnPage(most int) { s.mostOnPage = most }

// SetRenewPause sets how long Renew waits between passes.
func (s *Site) SetRenewPause(pause time.Duration) { s.renewPause = pause }

// Prepared is the statement that creates a record, as it is when all is decided.
func (s *Site) Prepared(op store.Op, now time.Time) (sql string, args []any) {
	p := plan{action: doCreate, next: s.first(op, now)}
	c := s.change(&p, nil, rows{}, func(st *statement, p *plan, _ *state) string { return stamped(st, p) })
	return c.sql, c.statement.args
}

// Ask has a statement answered together with others, and tells how many rows it has and the
// first value in them.
func (s *Site) Ask(ctx context.Context, sql string, args ...any) (n int, first int64, err error) {
	rows := &fetched{most: mostOnPage}
	if err := s.questions.rowsOf(ctx, sql, args, rows); err != nil {
		return 0, 0, err
	}
	err = rows.each(func(n int, c *columns) error {
		if value := c.int64(); n == 0 {
			first = value
		}
		return c.err
	})
	return rows.len(), first, err
}
