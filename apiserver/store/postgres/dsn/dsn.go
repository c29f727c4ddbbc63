// Package dsn parses Secrets in which tenants give the connection string and the certificates of a
// database. It accepts only what a TCP connection needs: no file paths, no Unix sockets, no session
// settings. Its errors name fields, but never contain values.
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

// The keys of a Secret in addition to that of the connection string. They are those of a Secret of
// type kubernetes.io/tls.
const (
	CAKey          = "ca.crt"
	CertificateKey = "tls.crt"
	PrivateKeyKey  = "tls.key"
)

// ReplicaKey returns the key of the connection string of the database's read replicas. key is the key of
// the connection string of the database.
func ReplicaKey(key string) string { return key + "-replica" }

// modes are the accepted values of sslmode. The other modes of libpq, which silently fall back to an
// unencrypted connection, are not accepted. PostgreSQL manual, 34.19.
var modes = []string{"disable", "require", "verify-ca", "verify-full"}

var hostName = regexp.MustCompile(`^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9.])?$`)

// Connection has the address and the credentials of a database. It is comparable.
type Connection struct {
	// URI is a connection string with user, host, port, database and sslmode, and with a password if the
	// Secret has one.
	URI string
	// CA holds the certificates of the trusted certificate authorities, in PEM. If CA is empty, verify-ca
	// and verify-full trust the authorities of the system, and require does not verify the server.
	// Certificate and PrivateKey are the client certificate and its key, in PEM. If both are empty, there
	// is no client certificate.
	CA, Certificate, PrivateKey string
	// ReplicaURI is a connection string of read replicas of the database. It is empty if there are none.
	ReplicaURI string
}

// FieldError means that a field of a Secret is missing or invalid.
type FieldError struct {
	// Field is the key in the Secret. For a part of the connection string, the name of the part
	// follows, such as "uri: host".
	Field string
	// Problem continues a sentence that begins with Field, such as "is missing".
	Problem string
}

func (e *FieldError) Error() string { return e.Field + " " + e.Problem }

// Parse returns the Connection in the data of a Secret. key is the key of the connection string,
// which must be a URI (PostgreSQL manual, 34.1.1.2) with user, host and database. If the Secret has
// the key ReplicaKey(key), its value must be such a URI too, with the same database. Errors:
// *FieldError.
func Parse(data map[string][]byte, key string) (Connection, error) {
	if _, there := data[key]; !there {
		return Connection{}, &FieldError{key, "is not in the Secret"}
	}
	c := Connection{CA: string(data[CAKey]), Certificate: string(data[CertificateKey]), PrivateKey: string(data[PrivateKeyKey])}
	if err := c.checkCertificates(); err != nil {
		return Connection{}, err
	}
	uri, err := c.parseURI(data, key)
	if err != nil {
		return Connection{}, err
	}
	c.URI = uri.String()
	if _, there := data[ReplicaKey(key)]; !there {
		return c, nil
	}
	replica, err := c.parseURI(data, ReplicaKey(key))
	if err != nil {
		return Connection{}, err
	}
	if replica.Path != uri.Path {
		return Connection{}, &FieldError{ReplicaKey(key) + ": database", "must be the same as in " + key}
	}
	c.ReplicaURI = replica.String()
	return c, nil
}

// parseURI returns the connection string at a key of a Secret, with a port and a mode. Errors:
// *FieldError.
func (c Connection) parseURI(data map[string][]byte, key string) (*url.URL, error) {
	uri, err := url.Parse(strings.TrimSpace(string(data[key])))
	if err != nil || uri.Opaque != "" || uri.Scheme != "postgres" && uri.Scheme != "postgresql" {
		return nil, &FieldError{key, "is not a URI such as postgres://user:password@host:5432/database"}
	}
	if field, problem := checkURI(uri); problem != "" {
		return nil, &FieldError{key + ": " + field, problem}
	}
	mode, problem := c.mode(uri.Query())
	if problem != "" {
		return nil, &FieldError{key + ": sslmode", problem}
	}
	return &url.URL{
		Scheme: "postgres", User: uri.User, Host: net.JoinHostPort(uri.Hostname(), portOf(uri)), Path: uri.Path,
		RawQuery: url.Values{"sslmode": {mode}}.Encode(),
	}, nil
}

// Replica returns the connection to the read replicas, which have the same certificates. Its URI is
// empty if there are no read replicas.
func (c Connection) Replica() Connection {
	c.URI, c.ReplicaURI = c.ReplicaURI, ""
	return c
}

// SameDatabase reports whether both are connections to the database with the same host, port and name,
// whatever their credentials.
func (c Connection) SameDatabase(other Connection) bool {
	mine, err := url.Parse(c.URI)
	theirs, otherErr := url.Parse(other.URI)
	return err == nil && otherErr == nil && mine.Host == theirs.Host && mine.Path == theirs.Path
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
		return "host", "must be one host name or IP address"
	}
	if port, err := strconv.ParseUint(portOf(uri), 10, 16); err != nil || port == 0 {
		return "port", "must be a number from 1 to 65535"
	}
	if database := strings.TrimPrefix(uri.Path, "/"); database == "" || strings.ContainsAny(database, "/\x00") {
		return "database", "must be one name, as in postgres://host/database"
	}
	if uri.Fragment != "" {
		return "fragment", "is not allowed; write %23 for a # in a name or a password"
	}
	query, err := url.ParseQuery(uri.RawQuery)
	if err != nil {
		return "parameters", "cannot be decoded; sslmode is the only allowed parameter, as in ?sslmode=require"
	}
	for name, values := range query {
		if name != "sslmode" {
			return "parameters", "may contain only sslmode; remove the other parameters"
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

// mode returns the sslmode of the connection, or a problem with the sslmode in query. If query has no
// sslmode, mode is verify-full with a CA, and require without one. With a CA, require becomes
// verify-ca, as in libpq (PostgreSQL manual, 34.19.1).
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
		return &FieldError{CAKey, "has no certificate in PEM"}
	}
	if (c.Certificate == "") != (c.PrivateKey == "") {
		return &FieldError{CertificateKey, "and " + PrivateKeyKey + " must be given together"}
	}
	if c.Certificate != "" {
		if _, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.PrivateKey)); err != nil {
			return &FieldError{CertificateKey, "and " + PrivateKeyKey + " are not a certificate and its private key in PEM"}
		}
	}
	return nil
}

// Data returns the data of a Secret from which Parse returns c. key is the key of the connection
// string.
func (c Connection) Data(key string) map[string][]byte {
	data := map[string][]byte{key: []byte(c.URI)}
	for name, value := range map[string]string{CAKey: c.CA, CertificateKey: c.Certificate, PrivateKeyKey: c.PrivateKey, ReplicaKey(key): c.ReplicaURI} {
		if value != "" {
			data[name] = []byte(value)
		}
	}
	return data
}

// Dial opens a network connection. It has the signature of net.Dialer.DialContext.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Apply adds the dial function, the trusted authorities and the client certificate of c to config,
// which must have been parsed from c.URI. If the sslmode is disable, it adds the dial function
// only.
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

// Bound sets the maximum size of messages from the server, in bytes. A larger message ends the
// connection before memory is allocated for the message. The limit is needed because a tenant
// chooses the server, and the protocol allows messages of 1 GiB.
func Bound(config *pgx.ConnConfig, bytes int) {
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		frontend := pgproto3.NewFrontend(r, w)
		frontend.SetMaxBodyLen(bytes)
		return frontend
	}
}
