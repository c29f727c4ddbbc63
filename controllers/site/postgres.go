package site

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

const (
	// databaseDelay is the pause before a database that cannot be used is tried again.
	databaseDelay = 20 * time.Second
	// databaseInterval is between two looks at one that can: nothing tells of its end.
	databaseInterval = 5 * time.Minute
)

var (
	postgresReady = verdict{metav1.ConditionTrue, v1alpha1.ReasonPostgresStorage, "records are kept in a Postgres database"}
	schemaReady   = verdict{metav1.ConditionTrue, v1alpha1.ReasonMigrated, "the tables are those of this release"}
	noDatabase    = verdict{metav1.ConditionUnknown, v1alpha1.ReasonNoDatabase, "no database was reached yet"}
	newerSchema   = verdict{
		metav1.ConditionFalse, v1alpha1.ReasonNewerSchema,
		"a later release changed the tables so that this one may not use them: upgrade, or restore the database as it was before",
	}
	migrationFailed = verdict{
		metav1.ConditionFalse, v1alpha1.ReasonMigrationFailed,
		"the tables could not be migrated; it is tried again, and the controller's log says why",
	}
)

// postgresStorage finds the connection to the Site's database, brings its tables up to
// date, and hands the connection to the API servers. While the database is away they keep
// what they were handed: whether they reach it is theirs to find out.
func (r *Reconciler) postgresStorage(ctx context.Context, s *scope) error {
	if s.siteClaim == nil {
		s.found.storageReady, s.found.schemaReady = &noStorage, &noStorage
		return nil
	}
	defer r.lookAtSecretAgain(s) // secrets.go
	key := s.siteClaim.Spec.SiteKey
	if s.site.Status.SiteKey == key {
		s.found.siteKey = key
	} else {
		s.found.schemaReady = &noDatabase // what was said of an earlier claim's data no longer holds
	}
	connection, bad, err := r.findConnection(ctx, s)
	if err != nil {
		return err
	}
	if bad != nil {
		s.found.storageReady = bad
		return nil
	}
	s.requeueAfter = databaseDelay
	conn, bad := r.connect(ctx, connection)
	if bad != nil {
		s.found.storageReady = bad
		return nil
	}
	defer closeConnection(ctx, conn)
	s.found.storageReady = &postgresReady
	if err := migrate(ctx, conn, s); err != nil || s.found.schemaReady != &schemaReady {
		return err
	}
	if err := r.publishConnection(ctx, s.site, key, connection); err != nil {
		return err
	}
	s.found.siteKey = key
	s.requeueAfter = databaseInterval
	return nil
}

// findConnection says how to reach the Site's database, which is made first where the Site
// asks for that. The verdict, unless nil, is why it cannot be reached.
func (r *Reconciler) findConnection(ctx context.Context, s *scope) (dsn.Connection, *verdict, error) {
	if s.site.Spec.Storage.Postgres.Provisioned != nil {
		return r.provisionDatabase(ctx, s) // provision.go
	}
	return r.connectionOf(ctx, s.site) // connection.go
}

// migrate brings the tables up to date.
func migrate(ctx context.Context, conn *pgx.Conn, s *scope) error {
	_, err := schema.Migrate(ctx, conn)
	switch {
	case errors.Is(err, schema.ErrNewer):
		s.found.schemaReady = &newerSchema
		return nil
	case err != nil:
		s.found.schemaReady = &migrationFailed
		return err
	default:
		s.found.schemaReady = &schemaReady
		return nil
	}
}

// eraseDatabase removes the rows of a site key from the database that the Site names. What
// it returns, unless empty, is why it has to wait.
func (r *Reconciler) eraseDatabase(ctx context.Context, site *v1alpha1.Site, key string) (wait string, err error) {
	if site.Status.SiteKey != key {
		return "", nil // no API server was ever handed a connection for this key
	}
	connection, there, err := r.publishedConnection(ctx, site.Namespace, key)
	if err != nil {
		return "", err
	}
	if !there {
		var bad *verdict
		if connection, bad, err = r.connectionOf(ctx, site); err != nil {
			return "", err
		} else if bad != nil {
			return bad.message, nil
		}
	}
	conn, bad := r.connect(ctx, connection)
	if bad != nil {
		return bad.message, nil
	}
	defer closeConnection(ctx, conn)
	return "", schema.Erase(ctx, conn, key)
}
