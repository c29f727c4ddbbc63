package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// SetPlanLimits lets tests use few records where the default limits would need many.
func (s *Store) SetPlanLimits(maxList, maxSemiJoinList, maxRankedList int) {
	s.planIndex.Limits = sqlplan.Limits{MaxList: maxList, MaxSemiJoinList: maxSemiJoinList, MaxRankedList: maxRankedList}
}

// EntryCount returns the estimated number of index entries of a parameter.
func (s *Store) EntryCount(typeName, param string) float64 {
	s.statistics.mu.Lock()
	defer s.statistics.mu.Unlock()
	return s.statistics.entries[s.hash.Param(typeName, param)]
}

// RecordCount returns the estimated number of records of a type.
func (s *Store) RecordCount(typeName string) float64 {
	s.statistics.mu.Lock()
	defer s.statistics.mu.Unlock()
	return s.statistics.records[typeName]
}

// SetRecordCount replaces the statistics by the number of records of one type.
func (s *Store) SetRecordCount(typeName string, n float64) {
	s.statistics.mu.Lock()
	defer s.statistics.mu.Unlock()
	s.statistics.readAt, s.statistics.entries, s.statistics.records = time.Now(), nil, map[string]float64{typeName: n}
}

// RefreshStatistics reads the statistics as if they were due, and reports whether they are due after that.
func (s *Store) RefreshStatistics(ctx context.Context) bool {
	s.statistics.mu.Lock()
	s.statistics.readAt = time.Time{}
	s.statistics.mu.Unlock()
	s.refreshStatistics(ctx)
	s.statistics.mu.Lock()
	defer s.statistics.mu.Unlock()
	return time.Since(s.statistics.readAt) >= statisticsTTL
}

// IsBatched reports whether the query of a page would be batched with others.
func (s *Store) IsBatched(ctx context.Context, query store.Query) (bool, error) {
	search := sqlplan.Search{Context: ctx, Index: &s.planIndex, Query: query, Order: order.Of(query)}
	page, err := search.Page(query.Types[0])
	if err != nil {
		return false, err
	}
	return page.IsBounded, nil
}

// Through returns the site on another pool.
func (s *Store) Through(pool *pgxpool.Pool) *Store {
	through := &Store{
		pool: pool, site: s.site, hash: s.hash, now: s.now, timeout: s.timeout, index: s.index, planIndex: s.planIndex, referencePaths: map[indexrow.ReferencePath]struct{}{},
		queries: newQueryBatcher(pool, s.site, s.timeout), quick: newQuickStatements(), maxPageBytes: s.maxPageBytes, share: newShare(pool.Config().MaxConns),
	}
	through.earlierTables.Store(s.earlierTables.Load())
	through.planIndex.Database = planDatabase{through, pool, through.earlier}
	return through
}

// SetMaxPageBytes replaces maxPageBytes.
func (s *Store) SetMaxPageBytes(most int) { s.maxPageBytes = most }

// SetRenewPause sets the time between two passes of Renew.
func (s *Store) SetRenewPause(pause time.Duration) { s.renewPause = pause }

// Prepared returns the statement that creates a record in a transaction.
func (s *Store) Prepared(op store.Op, now time.Time) (sql string, args []any) {
	p, _ := s.decide(op, nil, now) // without a precondition there is no error
	c := s.change(s.edit(&p, nil, indexrow.Rows{}, p.Events(op)), func(st *sqlplan.Statement, p *decision, _ *state) string { return knownTimeTable(st, p) })
	return c.sql, c.statement.Args
}

// QueryInBatch runs a statement through the query batcher. It returns the number of rows and the
// first value.
func (s *Store) QueryInBatch(ctx context.Context, sql string, args ...any) (n int, first int64, err error) {
	rows := &rowBuffer{maxBytes: maxPageBytes}
	if err := s.queries.query(ctx, sql, args, rows); err != nil {
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

// AcceptedEvents returns the events in the outbox, in the order of their sequence.
func (s *Store) AcceptedEvents(ctx context.Context) ([]store.AcceptedEvent, error) {
	rows, err := s.pool.Query(ctx, `SELECT seq, at, version, event, envelope FROM outbox WHERE site = $1 ORDER BY seq`, s.site)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (store.AcceptedEvent, error) {
		var seq, at, version int64
		var packed, envelope []byte
		if err := row.Scan(&seq, &at, &version, &packed, &envelope); err != nil {
			return store.AcceptedEvent{}, err
		}
		return outbox.Unpack(seq, at, version, packed, envelope)
	})
}

// BatchEveryWrite makes single writes use the statement of batches.
func (s *Store) BatchEveryWrite() { s.minBatch = 1 }

// WriteTogether decides on operations, calls then, and sends their writes as one batch. It returns
// the outcome and the error of the first attempt of each, and how many had to be repeated alone.
func (s *Store) WriteTogether(ctx context.Context, ops []store.Op, then func()) (outcomes []store.Outcome, errs []error, alone int) {
	outcomes, errs = make([]store.Outcome, len(ops)), make([]error, len(ops))
	batch := make([]*pendingWrite, len(ops))
	for i, op := range ops {
		e, err := s.prepare(ctx, op, 0)
		if err != nil {
			return nil, []error{err}, 0
		}
		batch[i] = &pendingWrite{edit: e}
	}
	then()
	s.sendWrites(ctx, slices.Clone(batch))
	for i, w := range batch {
		if !w.isDone {
			s.sendWrite(ctx, w)
			alone++
		}
		outcomes[i], errs[i] = w.Outcome, w.err
	}
	return outcomes, errs, alone
}

// ErrStale is the error of a write whose record changed after it was decided.
var ErrStale = errStale

// ReplicaTimings are the timings of searches on replicas that tests need to know.
const (
	ReplicaTimeout   = replicaTimeout
	ReplicaPause     = replicaPause
	PositionInterval = positionInterval
)

// MeasureLag reads the primary's position and returns the lag of the replica of one connection. It
// returns 0 if the lag is not known.
func (r *Replicas) MeasureLag(ctx context.Context, s *Store) (time.Duration, error) {
	r.readPosition()
	conn, err := r.standbys.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	found := &replica{Conn: conn}
	err = r.measure(ctx, found, s)
	if errors.Is(err, errLagging) {
		return 0, nil
	}
	return found.lag, err
}
