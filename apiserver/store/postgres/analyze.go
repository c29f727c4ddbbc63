package postgres

import (
	"context"
	"log/slog"
	"slices"
	"strings"
)

// analyzeSteps are numbers of records that this process has written to a site. When it reaches one of
// them, it checks Postgres's estimate of the number of rows in res. A statement that was planned for
// empty tables may use the wrong index. Autovacuum would correct the estimate only after a minute.
var analyzeSteps = []int64{200, 2_000, 20_000}

// searchedTables returns the tables that searches read.
func (s *Store) searchedTables() []string {
	return append([]string{"res", "hist", "claim"}, s.earlier().Tables()...)
}

// analyzeIfGrown adds records to the number of written records. When that number reaches one of
// analyzeSteps, it runs ANALYZE if Postgres estimates that res has fewer rows than that number. All
// sessions then plan their statements again. Errors are only logged.
func (s *Store) analyzeIfGrown(ctx context.Context, records int) {
	now := s.written.Add(int64(records))
	passed := slices.ContainsFunc(analyzeSteps, func(step int64) bool { return now-int64(records) < step && step <= now })
	if !passed {
		return
	}
	var known float64
	err := s.pool.QueryRow(ctx, `SELECT c.reltuples FROM pg_class c JOIN sites s ON s.site = $1 WHERE c.oid = 'res'::regclass`, s.site).Scan(&known)
	if err == nil && known < float64(now) {
		_, err = s.pool.Exec(ctx, `ANALYZE `+strings.Join(s.searchedTables(), ", "))
	}
	if err != nil {
		slog.WarnContext(ctx, "cannot analyze tables; autovacuum will analyze them later", "site", s.site, "error", err)
	}
}
