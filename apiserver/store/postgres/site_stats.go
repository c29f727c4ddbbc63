package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// The settings of statsCache. Counting many records takes time, so a result of cacheStatsFrom
// records or more is cached for statsTTL, and for statsFactor times the time that it took. So
// counting occupies a connection for at most 1 % of the time. After a failure, counting is not
// repeated for statsTTL.
const (
	cacheStatsFrom = 10_000
	statsTTL       = time.Minute
	statsFactor    = 100
)

type statsCache struct {
	mu    sync.Mutex
	last  store.Stats
	until time.Time
}

// Stats implements store.Store. The limits are 0, because this engine has none. Large counts are
// cached. If counting fails, it returns the last result.
func (s *Store) Stats() store.Stats {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	began := time.Now()
	if began.Before(s.stats.until) {
		return s.stats.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	const count = `SELECT count(*) FILTER (WHERE NOT deleted), COALESCE(sum(octet_length(body)), 0)::int8 +
		(SELECT COALESCE(sum(octet_length(body)), 0)::int8 FROM hist WHERE site = $1) FROM res WHERE site = $1`
	counted := store.Stats{Counted: began}
	err := s.pool.QueryRow(ctx, count, s.site).Scan(&counted.Records, &counted.Bytes)
	if err != nil { // the same error occurs in other calls, which return it
		s.stats.until = time.Now().Add(statsTTL)
		return s.stats.last
	}
	if counted.Records >= cacheStatsFrom {
		s.stats.until = time.Now().Add(max(statsTTL, statsFactor*time.Since(began)))
	}
	s.stats.last = counted
	return counted
}
