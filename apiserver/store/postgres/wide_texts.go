package postgres

import "context"

// Releases before server level 2 search texts in the table ix_str. While the database has that table,
// this release also writes it, and searches it. schema.DropWideTexts drops the table when all records
// have their rows in ix_text. Statements that name the table then fail, so no server misses a record.

// hasWideTexts reports whether texts are written to ix_str and searched there.
func (s *Store) hasWideTexts() bool { return s.wideTexts.Load() }

// findWideTexts finds out whether the database has the table ix_str.
func (s *Store) findWideTexts(ctx context.Context) error {
	var there bool
	err := s.pool.QueryRow(ctx, `SELECT to_regclass('ix_str') IS NOT NULL FROM sites WHERE site = $1`, s.site).Scan(&there)
	if err == nil {
		s.wideTexts.Store(there)
	}
	return err
}

// lostWideTexts reports whether a statement failed because ix_str is gone. The caller must then build
// the statement again, which no longer names ix_str. It does not matter which of several concurrent
// callers finds this out first.
func (s *Store) lostWideTexts(ctx context.Context, err error) bool {
	if !hasCode(err, undefinedTable) {
		return false
	}
	return s.findWideTexts(ctx) == nil && !s.hasWideTexts()
}
