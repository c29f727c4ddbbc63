package postgres

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// sizesKept is how long the statistics of a database are taken to stay as they are.
const sizesKept = time.Minute

// sizes are how many entries the parameters have that have most, by their keys, as the
// database's statistics tell.
type sizes struct {
	mu      sync.Mutex
	entries map[int64]float64
	at      time.Time
}

// passedFor is how many entries a walk passes in the time that a list takes for one: they
// are compared in the pages of an index, and neither kept nor put in order.
const passedFor = 7

// entries are how many a parameter has; infinitely many where it is not known.
func (s *Site) entries(ctx context.Context, key int64) float64 {
	s.learnSizes(ctx)
	s.sizes.mu.Lock()
	defer s.sizes.mu.Unlock()
	if entries, known := s.sizes.entries[key]; known {
		return entries
	}
	return math.Inf(1)
}

// fewOf is up to how many records a list is read as a whole for a page, rather than walked to
// among the entries of a parameter: the page is behind so many of these that both take the
// same time.
func fewOf(entries float64, page int) int {
	return int(min(math.Sqrt(float64(page)*entries/passedFor), math.MaxInt32))
}

// learnSizes asks for the sizes when it is time; meanwhile others go by the old ones.
func (s *Site) learnSizes(ctx context.Context) {
	s.sizes.mu.Lock()
	due := time.Since(s.sizes.at) >= sizesKept
	if due {
		s.sizes.at = time.Now()
	}
	s.sizes.mu.Unlock()
	if !due {
		return
	}
	entries, err := s.askSizes(ctx)
	if err != nil {
		slog.WarnContext(ctx, "searches go by the statistics of a while ago", "error", err)
		return
	}
	s.sizes.mu.Lock()
	defer s.sizes.mu.Unlock()
	s.sizes.entries = entries
}

func (s *Site) askSizes(ctx context.Context) (map[int64]float64, error) {
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
