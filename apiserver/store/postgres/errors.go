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
)

// SQLSTATEs that are told apart. Appendix A of the PostgreSQL manual.
const (
	uniqueViolation      = "23505"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	queryCanceled        = "57014"
	undefinedTable       = "42P01"
)

// unavailableClasses are those of errors that say something of the server's state rather
// than of the statement: connections, resources, an operator's intervention, the system.
var unavailableClasses = []string{"08", "25", "28", "3D", "40", "53", "55", "57", "58", "XX"}

// storeError makes an error of the contract of what a statement came to.
func storeError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		for _, class := range unavailableClasses {
			if strings.HasPrefix(answer.Code, class) {
				return fmt.Errorf("%s: %w: %w", doing, store.ErrUnavailable, err)
			}
		}
		return fmt.Errorf("%s: %w", doing, err)
	}
	var network net.Error
	var connect *pgconn.ConnectError
	if errors.As(err, &network) || errors.As(err, &connect) || errors.Is(err, context.DeadlineExceeded) ||
		pgconn.Timeout(err) || pgconn.SafeToRetry(err) || isCut(err) {
		return fmt.Errorf("%s: %w: %w", doing, store.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// programLimits is the class of errors of statements that are too large or too deep.
const programLimits = "54"

// takesTooLong reports whether the server gave up a query, for its time or its size. One
// that does not answer in time says nothing of the query.
func takesTooLong(err error) bool {
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

// isCut reports whether a connection ended under a statement, or its pool was closed.
func isCut(err error) bool {
	for _, cut := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, puddle.ErrClosedPool} {
		if errors.Is(err, cut) {
			return true
		}
	}
	return false
}
