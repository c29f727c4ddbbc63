package schema

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// FencedState is the SQLSTATE with which writes to a fenced site (Fence) fail. No other error has a
// SQLSTATE of the same class, PD.
const FencedState = "PDF01"

// fencedTables are the tables whose rows of a fenced site cannot be changed. Each write of a record
// changes res, each new event is inserted into outbox, and each attempt of a delivery changes
// delivery.
var fencedTables = []string{"res", "outbox", "delivery"}

// ErrFenced means that the site is fenced (Fence), because a SiteMove has moved its data to another
// storage, or is moving it.
var ErrFenced = errors.New("the site is fenced, because a SiteMove has moved its data to another storage or is moving it")

// Fence makes all writes of records, events and deliveries of the site with a site key fail, in any
// process, until Unfence is called. It waits for the transactions that are changing rows, and fails
// if they take too long (patience). A fence consists of triggers, so that databases without a fence
// have no cost. Fence can be repeated. It does nothing if there is no such site.
func Fence(ctx context.Context, conn *pgx.Conn, key string) error {
	site, there, err := numberOf(ctx, conn, key)
	if err != nil || !there {
		return err
	}
	statements := []string{`CREATE OR REPLACE FUNCTION paddock_fenced() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		RAISE EXCEPTION 'the site is being moved to another storage' USING ERRCODE = '` + FencedState + `'; END $$`}
	for _, table := range fencedTables {
		name := fenceName(site)
		statements = append(statements,
			fmt.Sprintf(`DROP TRIGGER IF EXISTS %s_new ON %s`, name, table),
			fmt.Sprintf(`DROP TRIGGER IF EXISTS %s_old ON %s`, name, table),
			fmt.Sprintf(`CREATE TRIGGER %s_new BEFORE INSERT OR UPDATE ON %s FOR EACH ROW WHEN (NEW.site = %d) EXECUTE FUNCTION paddock_fenced()`, name, table, site),
			fmt.Sprintf(`CREATE TRIGGER %s_old BEFORE DELETE ON %s FOR EACH ROW WHEN (OLD.site = %d) EXECUTE FUNCTION paddock_fenced()`, name, table, site))
	}
	return runFence(ctx, conn, site, statements)
}

// Unfence removes the fence of a site, so that writes succeed again. It does nothing if the site is
// not fenced.
func Unfence(ctx context.Context, conn *pgx.Conn, key string) error {
	site, there, err := numberOf(ctx, conn, key)
	if err != nil || !there {
		return err
	}
	var statements []string
	for _, table := range fencedTables {
		for _, suffix := range []string{"_new", "_old"} {
			statements = append(statements, fmt.Sprintf(`DROP TRIGGER IF EXISTS %s%s ON %s`, fenceName(site), suffix, table))
		}
	}
	return runFence(ctx, conn, site, statements)
}

// IsFenced reports whether the site with a site key is fenced. It returns false if there is no such
// site.
func IsFenced(ctx context.Context, conn *pgx.Conn, key string) (bool, error) {
	site, there, err := numberOf(ctx, conn, key)
	if err != nil || !there {
		return false, err
	}
	return hasFence(ctx, conn, site)
}

// hasFence is like IsFenced, for the number of a site.
func hasFence(ctx context.Context, conn *pgx.Conn, site int32) (fenced bool, err error) {
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'res'::regclass AND tgname = $1)`, fenceName(site)+"_new").Scan(&fenced)
	if err != nil {
		return false, fmt.Errorf("read the fence of site %d: %w", site, err)
	}
	return fenced, nil
}

// HasSite reports whether the database has the site with a site key.
func HasSite(ctx context.Context, conn *pgx.Conn, key string) (bool, error) {
	_, there, err := numberOf(ctx, conn, key)
	return there, err
}

// querier is a connection or a pool of connections.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// DataID returns a digest that identifies the data of the site with a site key in this database, or "" if the
// database has no such site, or no tables. A backup that is restored has the same digest. A database that was
// created again has another one.
func DataID(ctx context.Context, db querier, key string) (id string, err error) {
	err = db.QueryRow(ctx, `SELECT encode(sha256(hash_key), 'hex') FROM sites WHERE key = $1`, key).Scan(&id)
	var answer *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows), errors.As(err, &answer) && answer.Code == "42P01": // undefined_table
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the ID of the data of site %s: %w", key, err)
	}
	return id, nil
}

func fenceName(site int32) string { return fmt.Sprintf("paddock_fence_%d", site) }

// numberOf returns the number of the site with the key. there is false if the database has no such
// site, or no tables.
func numberOf(ctx context.Context, conn *pgx.Conn, key string) (site int32, there bool, err error) {
	var migrated bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('sites') IS NOT NULL`).Scan(&migrated); err != nil || !migrated {
		return 0, false, err
	}
	err = conn.QueryRow(ctx, `SELECT site FROM sites WHERE key = $1`, key).Scan(&site)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read the number of site %s: %w", key, err)
	}
	return site, true, nil
}

// runFence runs the statements that change the fence of a site.
func runFence(ctx context.Context, conn *pgx.Conn, site int32, statements []string) error {
	if err := runLocked(ctx, conn, statements); err != nil {
		return fmt.Errorf("change the fence of site %d: %w", site, err)
	}
	return nil
}

// runLocked runs the statements in a transaction. Like a migration, it gives way to transactions that
// hold the tables for long, and fails after the attempts of patience.
func runLocked(ctx context.Context, conn *pgx.Conn, statements []string) error {
	return whileLocked(ctx, func() error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, lockTimeout); err != nil {
				return err
			}
			for _, sql := range statements {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
