package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// The SQLSTATEs on which several files of this package branch (PostgreSQL manual, appendix A).
const (
	uniqueViolation      = "23505"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	queryCanceled        = "57014"
	undefinedTable       = "42P01"
	undefinedColumn      = "42703"
	insufficientRight    = "42501"
)

// unavailableStates are SQLSTATEs, and classes of SQLSTATEs (two characters), which mean that the
// database is unavailable, and not that the statement is wrong: lost connections (08), a state of the
// transaction such as read-only (25), authentication (28), a missing database (3D), conflicts of
// transactions and locks (40, 55), resources (53), operator intervention (57), system and internal
// errors (58, XX), a table or column that a later release has removed, and rights that were revoked.
var unavailableStates = []string{"08", "25", "28", "3D", "40", "53", "55", "57", "58", "XX", undefinedTable, undefinedColumn, insufficientRight}

// storeError wraps an error with doing, the name of the operation, and with store.ErrUnavailable if
// the database was not available. If the site is fenced (schema.Fence), it returns store.ErrMoving
// instead. It returns nil if err is nil.
func storeError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if hasCode(err, schema.FencedState) {
		return fmt.Errorf("%s: %w", doing, store.ErrMoving)
	}
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		for _, state := range unavailableStates {
			if strings.HasPrefix(answer.Code, state) {
				return fmt.Errorf("%s: %w: %w", doing, store.ErrUnavailable, err)
			}
		}
		return fmt.Errorf("%s: %w", doing, err)
	}
	var network net.Error
	var connect *pgconn.ConnectError
	if errors.As(err, &network) || errors.As(err, &connect) || errors.Is(err, context.DeadlineExceeded) ||
		pgconn.Timeout(err) || pgconn.SafeToRetry(err) || isDisconnected(err) {
		return fmt.Errorf("%s: %w: %w", doing, store.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// queryError is like storeError, but returns store.ErrQueryTimeout if the server rejected or
// cancelled a query because of its size or duration (isQueryLimit).
func queryError(doing string, err error) error {
	if isQueryLimit(err) {
		return fmt.Errorf("%s: %w: %w", doing, store.ErrQueryTimeout, err)
	}
	return storeError(doing, err)
}

// programLimits is the SQLSTATE class of errors of statements that are too long or too complex.
const programLimits = "54"

// isQueryLimit reports whether the server rejected or cancelled a query because of its size or
// duration. It returns false if the server did not respond in time, because the query may not be
// the cause.
func isQueryLimit(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && (answer.Code == queryCanceled || strings.HasPrefix(answer.Code, programLimits))
}

func hasCode(err error, codes ...string) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return false
	}
	for _, code := range codes {
		if answer.Code == code {
			return true
		}
	}
	return false
}

// isUndone reports whether an error shows that the server has undone a statement, and that the
// statement may be the cause. After the loss of a connection, the statement may have been committed.
// If the server is out of resources or shuts down, further statements would fail too.
func isUndone(err error) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Code[:min(2, len(answer.Code))] {
	case "08", "25", "53", "57", "58", "XX":
		return false
	default:
		return true
	}
}

// isDisconnected reports whether the connection or its pool was closed during a statement.
func isDisconnected(err error) bool {
	for _, target := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, puddle.ErrClosedPool} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
