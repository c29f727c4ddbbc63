package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Counting takes a while where there is much to count: then a count is kept for a minute.
const (
	muchToCount = 10_000
	countKept   = time.Minute
)

type statsCache struct {
	mu    sync.Mutex
	known store.Stats
	at    time.Time
}

// Stats implements store.Store. There are no limits: what there is to tell is how much is
// stored, as far as the database answers.
func (s *Site) Stats() store.Stats {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	if s.stats.known.Records >= muchToCount && time.Since(s.stats.at) < countKept {
		return s.stats.known
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	const count = `SELECT count(*), COALESCE(sum(octet_length(body)), 0)::int8 +
		(SELECT COALESCE(sum(octet_length(body)), 0)::int8 FROM hist WHERE site = $1) FROM res WHERE site = $1`
	var counted store.Stats
	if err := s.pool.QueryRow(ctx, count, s.site).Scan(&counted.Records, &counted.Bytes); err != nil {
		return s.stats.known // what was counted last; the error shows in every other call
	}
	s.stats.known, s.stats.at = counted, time.Now()
	return counted
}
