package postgres

import (
	"context"
	"log/slog"
	"slices"
	"strings"
)

// growth are after how many records written by this process it looks whether the database
// knows how large its tables have become. Statements that were planned for empty tables
// may use any index; autovacuum would notice a minute later.
var growth = []int64{200, 2_000, 20_000}

var indexedTables = []string{"res", "hist", "ix_tok", "ix_ref", "ix_str", "ix_date", "ix_pos", "claim"}

// grown counts records written, and has the tables analyzed when they grew beyond what the
// database knows. That lets every session plan its statements anew.
func (s *Site) grown(ctx context.Context, records int) {
	now := s.written.Add(int64(records))
	passed := slices.ContainsFunc(growth, func(step int64) bool { return now-int64(records) < step && step <= now })
	if !passed {
		return
	}
	var known float64
	err := s.pool.QueryRow(ctx, `SELECT c.reltuples FROM pg_class c JOIN sites s ON s.site = $1 WHERE c.oid = 'res'::regclass`, s.site).Scan(&known)
	if err == nil && known < float64(now) {
		_, err = s.pool.Exec(ctx, `ANALYZE `+strings.Join(indexedTables, ", "))
	}
	if err != nil {
		slog.WarnContext(ctx, "the tables are left to autovacuum to analyze", "error", err)
	}
}
