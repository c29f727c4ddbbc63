package site

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/egress"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

const (
	connectTimeout = 5 * time.Second
	// largestMessage is the maximum size in bytes of a message from the database. A larger one ends
	// the connection. The controller reads no records, so the responses that it gets are smaller.
	largestMessage = 1 << 20
	// oldestPostgres is the lowest supported server_version_num.
	oldestPostgres = 140000
)

// connect opens a connection to a writable database, or returns a verdict that says why there is
// none. The verdict contains no values of the connection string.
func (r *Reconciler) connect(ctx context.Context, connection dsn.Connection) (*pgx.Conn, *verdict) {
	conn, err := r.dial(ctx, connection)
	if err != nil {
		logf.FromContext(ctx).Info("cannot use the database", "problem", problemOf(err))
		return nil, &verdict{metav1.ConditionFalse, v1alpha1.ReasonDatabaseUnreachable, "The database cannot be used: " + problemOf(err) + "."}
	}
	return conn, nil
}

// unusable is the error for a reachable database that cannot be used.
type unusable string

func (e unusable) Error() string { return string(e) }

func (r *Reconciler) dial(ctx context.Context, connection dsn.Connection) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(connection.URI)
	if err != nil {
		return nil, err
	}
	if err := connection.Apply(config, r.Dial); err != nil {
		return nil, err
	}
	dsn.Bound(config, largestMessage)
	if r.Lookup != nil {
		config.LookupFunc = r.Lookup
	}
	config.RuntimeParams["application_name"] = "paddock-controller"
	connecting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, config)
	if err != nil {
		return nil, err
	}
	var version int
	var readOnly string
	err = conn.QueryRow(connecting, `SELECT current_setting('server_version_num')::int, current_setting('transaction_read_only')`).Scan(&version, &readOnly)
	switch {
	case err == nil && version < oldestPostgres:
		err = unusable("its version is older than 14; use Postgres 14 or later")
	case err == nil && readOnly == "on":
		err = unusable("it is read-only; connect to the primary server")
	}
	if err != nil {
		closeConnection(ctx, conn)
		return nil, err
	}
	return conn, nil
}

func closeConnection(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()
	_ = conn.Close(ctx) // the connection is closed with or without an error
}

// problemOf returns why there is no connection. It does not use the text of the driver's errors,
// which can contain names and addresses from the Secret. It uses those of TLS alerts, which are constants.
func problemOf(err error) string {
	var reason unusable
	var answer *pgconn.PgError
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError // with verify-ca, the driver verifies the certificate
	var invalid x509.CertificateInvalidError
	var network *net.OpError
	switch {
	case errors.As(err, &reason):
		return string(reason)
	case errors.As(err, &answer):
		return describeAnswer(answer.Code)
	case errors.Is(err, egress.ErrProhibited):
		return "its address is not public, and not in a network that the operator allows with --postgres-networks"
	case errors.As(err, &name):
		return "its host name cannot be resolved"
	case errors.As(err, &certificate), errors.As(err, &authority), errors.As(err, &invalid):
		return "its TLS certificate is not trusted or not valid for the host: check ca.crt of the Secret, and sslmode in the connection string"
	case strings.Contains(err.Error(), "server refused TLS connection"): // pgconn has no type for this error
		return "it does not support TLS: enable TLS in the server, or set sslmode=disable in the connection string"
	case errors.As(err, &network) && network.Op == "remote error": // an alert, see crypto/tls
		return fmt.Sprintf("it ended the TLS connection (%v): check tls.crt and tls.key of the Secret, and sslmode in the connection string", network.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err):
		return fmt.Sprintf("it did not respond within %.0f s", connectTimeout.Seconds())
	default:
		return "the connection or its TLS handshake failed"
	}
}

// describeAnswer describes the SQLSTATEs that a user can resolve (PostgreSQL manual, Appendix A).
func describeAnswer(code string) string {
	switch code {
	case "28P01", "28000":
		return "the user or password is wrong, or pg_hba.conf does not allow the connection, for example because of sslmode in the connection string (SQLSTATE " + code + ")"
	case "3D000":
		return "the database does not exist (SQLSTATE 3D000)"
	case "53300":
		return "it accepts no further connection: the limit of the server, of the database or of the user is reached (SQLSTATE 53300)"
	default:
		return "it responded with SQLSTATE " + code
	}
}
