package localpostgres

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
)

// CreateDatabase makes a database and its owner, a role of the same name, unless the database exists.
// It returns the connection string of the owner, with the password, and with TLS if Options.Secure is
// set. It does not change the password of an existing owner.
func (s *Server) CreateDatabase(ctx context.Context, name, password string) (string, error) {
	uri, err := url.Parse(s.URL(name))
	if err != nil {
		return "", err
	}
	uri.User = url.UserPassword(name, password)
	if s.options.Secure {
		uri.RawQuery = "sslmode=require"
	}
	conn, err := pgx.Connect(ctx, s.URL(superuser))
	if err != nil {
		return "", fmt.Errorf("connect to postgres: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists); err != nil || exists {
		return uri.String(), err
	}
	role := pgx.Identifier{name}.Sanitize()
	for _, sql := range []string{
		`DROP ROLE IF EXISTS ` + role,
		`CREATE ROLE ` + role + ` LOGIN PASSWORD '` + strings.ReplaceAll(password, "'", "''") + `'`,
		`CREATE DATABASE ` + role + ` OWNER ` + role,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", fmt.Errorf("create database %s: %w", name, err)
		}
	}
	return uri.String(), nil
}
