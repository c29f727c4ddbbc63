// Package dsn reads how to reach a database that a tenant names: the connection string
// and certificates of a Secret. It takes what is needed for that and nothing more: no
// paths of files, no sockets, no settings of sessions. Its errors name fields, never
// values.
package dsn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// The names in a Secret, beside that of the connection string. Those of a kubernetes.io/tls
// Secret.
const (
	CAKey          = "ca.crt"
	CertificateKey = "tls.crt"
	PrivateKeyKey  = "tls.key"
)

// modes are the values of sslmode: those that never fall back to plain text unasked.
// PostgreSQL manual, 34.19.
var modes = []string{"disable", "require", "verify-ca", "verify-full"}

var hostName = regexp.MustCompile(`^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9.])?$`)

// Connection is how to reach a database. It is comparable.
type Connection struct {
	// URI holds user, password, host, port, database and sslmode.
	URI string
	// CA, Certificate and PrivateKey are in PEM; empty: the system's authorities, no
	// certificate of the client.
	CA, Certificate, PrivateKey string
}

// FieldError says what is wrong with a field of a Secret.
type FieldError struct {
	// Field is the key of the Secret, with the part of the connection string behind it,
	// such as "uri: host".
	Field   string
	Problem string
}

func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

// Parse reads the data of a Secret whose connection string is under the key. It is a URI
// (PostgreSQL manual, 34.1.1.2) with user, host and database. Errors: *FieldError.
func Parse(data map[string][]byte, key string) (Connection, error) {
	text, there := data[key]
	if !there {
		return Connection{}, &FieldError{key, "is not in the Secret"}
	}
	c := Connection{CA: string(data[CAKey]), Certificate: string(data[CertificateKey]), PrivateKey: string(data[PrivateKeyKey])}
	if err := c.checkCertificates(); err != nil {
		return Connection{}, err
	}
	uri, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil || uri.Opaque != "" || uri.Scheme != "postgres" && uri.Scheme != "postgresql" {
		return Connection{}, &FieldError{key, "is not a URI such as postgres://user:password@host:5432/database"}
	}
	if field, problem := checkURI(uri); problem != "" {
		return Connection{}, &FieldError{key + ": " + field, problem}
	}
	mode, problem := c.mode(uri.Query())
	if problem != "" {
		return Connection{}, &FieldError{key + ": sslmode", problem}
	}
	c.URI = (&url.URL{
		Scheme: "postgres", User: uri.User, Host: net.JoinHostPort(uri.Hostname(), portOf(uri)), Path: uri.Path,
		RawQuery: url.Values{"sslmode": {mode}}.Encode(),
	}).String()
	return c, nil
}

func checkURI(uri *url.URL) (field, problem string) {
	switch host := uri.Hostname(); {
	case uri.User.Username() == "":
		return "user", "is missing"
	case strings.Contains(uri.User.Username(), "\x00"):
		return "user", "has a NUL in it"
	case strings.Contains(password(uri), "\x00"):
		return "password", "has a NUL in it"
	case host == "":
		return "host", "is missing"
	case !isHost(host):
		return "host", "must be one name or address, reached by TCP"
	}
	if port, err := strconv.ParseUint(portOf(uri), 10, 16); err != nil || port == 0 {
		return "port", "must be a number from 1 to 65535"
	}
	if database := strings.TrimPrefix(uri.Path, "/"); database == "" || strings.ContainsAny(database, "/\x00") {
		return "database", "must be one name: /database"
	}
	if uri.Fragment != "" {
		return "password", "has a # in it: write %23"
	}
	query, err := url.ParseQuery(uri.RawQuery)
	if err != nil {
		return "parameters", "cannot be read: a % is written %25"
	}
	for name, values := range query {
		if name != "sslmode" {
			return "parameters", "may be sslmode only"
		}
		if len(values) > 1 {
			return "sslmode", "is given more than once"
		}
	}
	return "", ""
}

func password(uri *url.URL) string {
	text, _ := uri.User.Password()
	return text
}

func isHost(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil && !strings.Contains(text, "%") || hostName.MatchString(text)
}

func portOf(uri *url.URL) string {
	if port := uri.Port(); port != "" {
		return port
	}
	return "5432"
}

// mode is the sslmode to use: TLS unless it is turned off, and with authorities to trust
// the server is verified, as libpq does (PostgreSQL manual, 34.19.1).
func (c Connection) mode(query url.Values) (mode, problem string) {
	mode = query.Get("sslmode")
	switch {
	case !query.Has("sslmode") && c.CA != "":
		return "verify-full", ""
	case !query.Has("sslmode"):
		return "require", ""
	case !slices.Contains(modes, mode):
		return "", "must be one of " + strings.Join(modes, ", ")
	case mode == "require" && c.CA != "":
		return "verify-ca", ""
	default:
		return mode, ""
	}
}

func (c Connection) checkCertificates() error {
	if c.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(c.CA)) {
		return &FieldError{CAKey, "holds no certificate in PEM"}
	}
	if (c.Certificate == "") != (c.PrivateKey == "") {
		return &FieldError{CertificateKey, "and " + PrivateKeyKey + " go together"}
	}
	if c.Certificate != "" {
		if _, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.PrivateKey)); err != nil {
			return &FieldError{CertificateKey, "and " + PrivateKeyKey + " are no certificate and its key in PEM"}
		}
	}
	return nil
}

// Data is what Parse reads again from a Secret, under the key.
func (c Connection) Data(key string) map[string][]byte {
	data := map[string][]byte{key: []byte(c.URI)}
	for name, value := range map[string]string{CAKey: c.CA, CertificateKey: c.Certificate, PrivateKeyKey: c.PrivateKey} {
		if value != "" {
			data[name] = []byte(value)
		}
	}
	return data
}

// Dial is that of a net.Dialer.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Apply sets how a configuration, which was made of the URI, dials and what it trusts.
func (c Connection) Apply(config *pgx.ConnConfig, dial Dial) error {
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dial(ctx, network, address)
	}
	if config.TLSConfig == nil {
		return nil
	}
	if c.CA != "" {
		config.TLSConfig.RootCAs = x509.NewCertPool()
		config.TLSConfig.RootCAs.AppendCertsFromPEM([]byte(c.CA))
	}
	if c.Certificate != "" {
		pair, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.PrivateKey))
		if err != nil {
			return fmt.Errorf("read the client certificate: %w", err)
		}
		config.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// Bound has a connection refuse messages of more bytes, before it makes room for them: the
// server is whatever a tenant named, and messages may have 1 GiB.
func Bound(config *pgx.ConnConfig, bytes int) {
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		frontend := pgproto3.NewFrontend(r, w)
		frontend.SetMaxBodyLen(bytes)
		return frontend
	}
}
