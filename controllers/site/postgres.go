package site

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/controllers/apply"
	"github.com/paddock-health/paddock/controllers/secrets"
)

const (
	// databaseDelay is the delay before the check of an unusable database is repeated.
	databaseDelay = 20 * time.Second
	// databaseInterval is the interval between checks of a usable database.
	databaseInterval = 5 * time.Minute
)

var (
	postgresReady = verdict{metav1.ConditionTrue, v1alpha1.ReasonPostgresStorage, "Records are stored in a Postgres database."}
	schemaReady   = verdict{metav1.ConditionTrue, v1alpha1.ReasonMigrated, "The database has the tables of this release."}
	noDatabase    = verdict{metav1.ConditionUnknown, v1alpha1.ReasonNoDatabase, "The database has not been reached yet."}
	newerSchema   = verdict{
		metav1.ConditionFalse, v1alpha1.ReasonNewerSchema,
		"A later release changed the tables in a way that this release does not support. Upgrade Paddock, or restore a backup of the database.",
	}
	migrationFailed = verdict{
		metav1.ConditionFalse, v1alpha1.ReasonMigrationFailed,
		"The migration of the tables failed and is retried. See the error in the controller's log.",
	}
)

// postgresStorage connects to the Site's database, migrates its tables, and publishes the
// connection for the API servers. While the database is unreachable, the published connection does
// not change.
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
		s.found.schemaReady = &noDatabase // a verdict about the data of an earlier claim no longer applies
	}
	connection, bad, err := r.findConnection(ctx, s)
	if err != nil {
		return err
	}
	if bad != nil && bad.reason == v1alpha1.ReasonSecretsForbidden && r.SecretAccess == secrets.Namespaced {
		// The right was revoked after mayReadSecret had checked it. In the next reconcile, mayReadSecret
		// reports this, and the verdicts about the data stay.
		s.lookAgain(apply.ConflictDelay)
		return nil
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
	if err := r.migrate(ctx, conn, s); err != nil || s.found.schemaReady != &schemaReady {
		return err
	}
	if err := r.noteExternal(ctx, s.siteClaim, &s.site.Spec.Storage); err != nil {
		return err
	}
	if err := r.publishConnection(ctx, s.site, key, connection); err != nil {
		return err
	}
	s.found.siteKey = key
	s.requeueAfter = databaseInterval
	return nil
}

// findConnection returns the connection to the Site's database. It provisions the database if the Site
// has spec.storage.postgres.provisioned, and places the Site in the pool if the Site has
// spec.storage.postgres.pool. If the verdict is not nil, it says why there is no connection.
func (r *Reconciler) findConnection(ctx context.Context, s *scope) (dsn.Connection, *verdict, error) {
	switch postgres := s.site.Spec.Storage.Postgres; {
	case postgres.Provisioned != nil:
		return r.provisionDatabase(ctx, s) // provision.go
	case postgres.Pool != nil:
		return r.place(ctx, s) // pool.go
	}
	return r.connectionOf(ctx, s.site) // connection.go
}

// migrate migrates the tables to this release and sets s.found.schemaReady.
func (r *Reconciler) migrate(ctx context.Context, conn *pgx.Conn, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, r.DatabaseTimeout)
	defer cancel()
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

// eraseDatabase deletes the rows of the site key of a claim from the Site's database, which is external or in
// a pool. If wait is not empty, it says why the rows cannot be deleted yet.
func (r *Reconciler) eraseDatabase(ctx context.Context, site *v1alpha1.Site, claim *v1alpha1.SiteClaim) (wait string, err error) {
	key := claim.Spec.SiteKey
	adopted := claim.Spec.External != nil || claim.CreationTimestamp.Before(&site.CreationTimestamp)
	neverPlaced := isPooled(&site.Spec.Storage) && claim.Spec.Placement == nil
	if site.Status.SiteKey != key && (!adopted || neverPlaced) {
		return "", nil // no connection was published for this key, so no database has rows of it
	}
	conn, bad, err := r.connectToErase(ctx, site, key)
	if err != nil {
		return "", err
	}
	if bad != nil {
		return bad.message, nil
	}
	defer closeConnection(ctx, conn)
	erasing, cancel := context.WithTimeout(ctx, r.DatabaseTimeout)
	defer cancel()
	if err := schema.Erase(erasing, conn, key); erasing.Err() == nil {
		return "", err
	}
	return fmt.Sprintf("The database did not delete all rows within %s. The deletion continues.", r.DatabaseTimeout), nil
}

// connectToErase connects to the database of a Site that is being deleted, by the connection that is
// published to the API servers. If no connection is published, or it fails, connectToErase uses the
// Secret of the database, in which the password may have been renewed since. It does not use a Secret
// that names another database than the failed connection.
func (r *Reconciler) connectToErase(ctx context.Context, site *v1alpha1.Site, key string) (*pgx.Conn, *verdict, error) {
	published, there, err := r.publishedConnection(ctx, site.Namespace, key)
	if err != nil {
		return nil, nil, err
	}
	var refused *verdict
	if there {
		var conn *pgx.Conn
		if conn, refused = r.connect(ctx, published); refused == nil {
			return conn, nil, nil
		}
	}
	former, bad, err := r.formerConnection(ctx, site)
	switch {
	case err != nil:
		return nil, nil, err
	case there && (bad != nil || !former.SameDatabase(published)):
		return nil, refused, nil
	case bad != nil:
		return nil, bad, nil
	}
	conn, bad := r.connect(ctx, former)
	return conn, bad, nil
}

// formerConnection returns the connection in the Secret of the database of a Site that is being deleted.
func (r *Reconciler) formerConnection(ctx context.Context, site *v1alpha1.Site) (dsn.Connection, *verdict, error) {
	if site.Spec.Storage.Postgres.Pool == nil {
		return r.connectionOf(ctx, site)
	}
	claim, err := find[v1alpha1.SiteClaim](ctx, r.Live, client.ObjectKey{Name: site.SiteID()})
	if err != nil || claim == nil || !claim.HeldBy(site) || claim.Spec.Placement == nil {
		return dsn.Connection{}, &notPlaced, err
	}
	return r.placedConnection(ctx, claim.Spec.Placement) // pool.go
}
