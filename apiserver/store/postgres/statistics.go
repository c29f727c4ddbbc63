package postgres

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// statisticsTTL is the time after which statistics are read again from the database.
const statisticsTTL = time.Minute

// statistics are the numbers of index entries of the most frequent keys (hashes of type and
// parameter), by key. Postgres estimates them when it analyzes the tables.
type statistics struct {
	mu      sync.Mutex
	entries map[int64]float64
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

// refreshStatistics reads the statistics if they are older than statisticsTTL. Meanwhile,
// concurrent searches use the old ones. If reading fails, the old ones remain in use for another
// statisticsTTL.
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
	if err != nil {
		slog.WarnContext(ctx, "cannot read statistics; searches use older ones", "error", err)
		return
	}
	s.statistics.mu.Lock()
	defer s.statistics.mu.Unlock()
	s.statistics.entries = entries
}

func (s *Store) readStatistics(ctx context.Context) (map[int64]float64, error) {
	const find = `SELECT f.key, f.share * c.reltuples FROM sites s
		JOIN pg_class c ON c.oid IN ('ix_str'::regclass, 'ix_date'::regclass)
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
