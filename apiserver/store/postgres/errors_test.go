package postgres

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-health/paddock/apiserver/store"
)

func TestStoreError(t *testing.T) {
	for state, unavailable := range map[string]bool{
		"08006": true,  // the connection is lost
		"42P01": true,  // a later release has removed a table
		"42703": true,  // a later release has removed a column
		"42501": true,  // a right was revoked
		"42601": false, // a syntax error
		"22P02": false, // an invalid value
	} {
		err := storeError("read", &pgconn.PgError{Code: state})
		if got := errors.Is(err, store.ErrUnavailable); got != unavailable {
			t.Errorf("SQLSTATE %s: ErrUnavailable %t, want %t", state, got, unavailable)
		}
	}
}
