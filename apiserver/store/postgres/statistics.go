package postgres

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// statisticsTTL is the time after which statistics are read again from the database.
const statisticsTTL = time.Minute

// statistics are the numbers of index entries of the most frequent keys (hashes of type and
// parameter) in ix_date, and in ix_str if the database has it, by key. Postgres estimates them when
// it analyzes the tables.
type statistics struct {
	mu      sync.Mutex
	entries map[int64]float64
	// records are the numbers of records of the most frequent types.
	records map[string]float64
	readAt  time.Time
}

func (d planDatabase) EntryCount(ctx context.Context, key int64) float64 {
	s := d.site
	s.refreshStatistics(ctx)
	s.statistics.mu.Lock()
	defer s.statistics.mu.Unlock()
	if entries, known := s.statistics.entries[key]; known {
		return entries
	}
	return math.Inf(1)
}

func (d planDatabase) RecordCount(ctx context.Context, typeName string) float64 {
	s := d.site
	s.refreshStatistics(ctx)
	s.statistics.mu.Lock()
	defer s.statistics.mu.Unlock()
	if records, known := s.statistics.records[typeName]; known {
		return records
	}
	return math.Inf(1)
}

// refreshStatistics reads the statistics if they are older than statisticsTTL. While it reads them,
// concurrent searches use the old statistics. If reading fails, the old statistics remain in use for
// another statisticsTTL, or until the next search if the client of this one has gone away.
func (s *Store) refreshStatistics(ctx context.Context) {
	s.statistics.mu.Lock()
	due := time.Since(s.statistics.readAt) >= statisticsTTL
	if due {
		s.statistics.readAt = time.Now()
	}
	s.statistics.mu.Unlock()
	if !due {
		return
	}
	entries, err := s.readStatistics(ctx)
	var records map[string]float64
	if err == nil {
		records, err = s.readRecordCounts(ctx)
	}
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		s.statistics.mu.Lock()
		defer s.statistics.mu.Unlock()
		s.statistics.readAt = time.Time{}
		return
	}
	if err != nil {
		slog.WarnContext(ctx, "cannot read the statistics of a site; searches use older statistics or none", "site", s.site, "error", err)
		return
	}
	s.statistics.mu.Lock()
	defer s.statistics.mu.Unlock()
	s.statistics.entries, s.statistics.records = entries, records
}

// readRecordCounts returns the numbers of records of the most frequent types, from the statistics
// res_types.
func (s *Store) readRecordCounts(ctx context.Context) (map[string]float64, error) {
	const find = `SELECT t.most_common_vals[n][2], t.most_common_freqs[n] * c.reltuples FROM pg_class c
		JOIN pg_namespace m ON m.oid = c.relnamespace
		JOIN pg_stats_ext t ON t.statistics_schemaname = m.nspname AND t.statistics_name = 'res_types'
		CROSS JOIN LATERAL generate_subscripts(t.most_common_freqs, 1) n
		JOIN sites s ON s.site = $1 AND t.most_common_vals[n][1] = s.site::text
		WHERE c.oid = 'res'::regclass`
	rows, err := s.pool.Query(ctx, find, s.site)
	if err != nil {
		return nil, err
	}
	records := map[string]float64{}
	var typeName string
	var n float64
	_, err = pgx.ForEachRow(rows, []any{&typeName, &n}, func() error {
		records[typeName] = n
		return nil
	})
	return records, err
}

func (s *Store) readStatistics(ctx context.Context) (map[int64]float64, error) {
	const find = `SELECT f.key, f.share * c.reltuples FROM sites s
		JOIN pg_class c ON c.oid IN (to_regclass('ix_str'), 'ix_date'::regclass)
		JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_stats t ON t.schemaname = n.nspname AND t.tablename = c.relname AND t.attname = 'key'
		CROSS JOIN LATERAL unnest(t.most_common_vals::text::int8[], t.most_common_freqs) f(key, share)
		WHERE s.site = $1`
	rows, err := s.pool.Query(ctx, find, s.site)
	if err != nil {
		return nil, err
	}
	entries := map[int64]float64{}
	var key int64
	var n float64
	_, err = pgx.ForEachRow(rows, []any{&key, &n}, func() error {
		entries[key] = n
		return nil
	})
	return entries, err
}
