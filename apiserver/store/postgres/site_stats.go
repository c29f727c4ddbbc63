package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// The settings of statsCache. Counting many records takes time, so a result of cacheStatsFrom
// records or more is cached for statsTTL.
const (
	cacheStatsFrom = 10_000
	statsTTL       = time.Minute
)

type statsCache struct {
	mu   sync.Mutex
	last store.Stats
	at   time.Time
}

// Stats implements store.Store. The limits are 0, because this engine has none. If counting fails,
// it returns the last result.
func (s *Store) Stats() store.Stats {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	if s.stats.last.Records >= cacheStatsFrom && time.Since(s.stats.at) < statsTTL {
		return s.stats.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	const count = `SELECT count(*) FILTER (WHERE NOT deleted), COALESCE(sum(octet_length(body)), 0)::int8 +
		(SELECT COALESCE(sum(octet_length(body)), 0)::int8 FROM hist WHERE site = $1) FROM res WHERE site = $1`
	var counted store.Stats
	if err := s.pool.QueryRow(ctx, count, s.site).Scan(&counted.Records, &counted.Bytes); err != nil {
		return s.stats.last // the same error occurs in other calls, which return it
	}
	s.stats.last, s.stats.at = counted, time.Now()
	return counted
}
