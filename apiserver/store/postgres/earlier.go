package postgres

import (
	"context"

	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// Earlier releases search tables that this one does without. While the database has such tables, this
// release also writes what the earlier ones search. schema.Contract drops or renames them when no earlier
// release may use the database any more. Statements that name them then fail, so no server misses a record.

// earlier returns the tables of earlier releases that the database has.
func (s *Store) earlier() indexrow.Earlier { return *s.earlierTables.Load() }

// hasEarlier is the SQL of two columns: the fields of indexrow.Earlier.
const hasEarlier = `to_regclass('ix_str') IS NOT NULL, to_regclass('ix_tok') IS NOT NULL`

// findEarlier finds out which tables of earlier releases the database has.
func (s *Store) findEarlier(ctx context.Context) error {
	var found indexrow.Earlier
	err := s.pool.QueryRow(ctx, `SELECT `+hasEarlier+` FROM sites WHERE site = $1`, s.site).Scan(&found.WideTexts, &found.AllTokens)
	if err == nil {
		s.earlierTables.Store(&found)
	}
	return err
}

// lostEarlier reports whether a statement failed because tables of earlier releases are gone since the
// statement was built. The caller must then build it again. It does not matter which of several
// concurrent callers finds this out first.
func (s *Store) lostEarlier(ctx context.Context, err error) bool {
	if !hasCode(err, undefinedTable) {
		return false
	}
	return s.findEarlier(ctx) == nil && s.earlier() != (indexrow.Earlier{WideTexts: true, AllTokens: true})
}
