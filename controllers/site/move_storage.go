package site

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/controllers/apply"
)

// inCluster reports whether the source of a direction is storage in the cluster. The source is the storage
// from which the data is copied. It is the former storage in the direction MoveForward, and the new
// storage, which is always Postgres, in the direction MoveBack.
func inCluster(s *moveScope, direction v1alpha1.MoveDirection) bool {
	return direction == v1alpha1.MoveForward && s.status.From.Type == v1alpha1.StorageCluster
}

// fence locks the source of a direction: the storage refuses writes.
func (r *MoveReconciler) fence(ctx context.Context, s *moveScope, direction v1alpha1.MoveDirection) error {
	if inCluster(s, direction) {
		return r.labelFenced(ctx, s.move.Namespace, true)
	}
	return r.withDatabase(ctx, s, sourceName(s, direction), func(ctx context.Context, conn *pgx.Conn) error {
		fenced, err := schema.IsFenced(ctx, conn, s.status.SiteKey)
		if err != nil || fenced {
			return err
		}
		return schema.Fence(ctx, conn, s.status.SiteKey)
	})
}

// unfence unlocks the source of a direction.
func (r *MoveReconciler) unfence(ctx context.Context, s *moveScope, direction v1alpha1.MoveDirection) error {
	if inCluster(s, direction) {
		return r.labelFenced(ctx, s.move.Namespace, false)
	}
	return r.withDatabase(ctx, s, sourceName(s, direction), func(ctx context.Context, conn *pgx.Conn) error {
		fenced, err := schema.IsFenced(ctx, conn, s.status.SiteKey)
		if err != nil || !fenced {
			return err
		}
		return schema.Unfence(ctx, conn, s.status.SiteKey)
	})
}

// dropChanges ends the log of changes in the former database of the Site, if it had one.
func (r *MoveReconciler) dropChanges(ctx context.Context, s *moveScope) error {
	if s.status.From.Type != v1alpha1.StoragePostgres {
		return nil
	}
	return r.withDatabase(ctx, s, v1alpha1.MoveFromName(s.move.Namespace), func(ctx context.Context, conn *pgx.Conn) error {
		return schema.DropChangesOf(ctx, conn, s.status.SiteKey)
	})
}

// sourceName returns the name of the Secret with the connection of the source of a direction.
func sourceName(s *moveScope, direction v1alpha1.MoveDirection) string {
	if direction == v1alpha1.MoveBack {
		return v1alpha1.MoveToName(s.move.Namespace)
	}
	return v1alpha1.MoveFromName(s.move.Namespace)
}

// eraseFormer unlocks the former storage and deletes the data of the Site there. It returns the delay
// before the next attempt, or zero if all is deleted.
func (r *MoveReconciler) eraseFormer(ctx context.Context, s *moveScope) (time.Duration, error) {
	if inCluster(s, v1alpha1.MoveForward) {
		if err := r.labelFenced(ctx, s.move.Namespace, false); err != nil {
			return 0, err
		}
		left, err := r.sweep(ctx, s.move.Namespace, s.status.SiteKey)
		if err != nil || left {
			return sweepDelay, err
		}
		return 0, nil
	}
	if isProvisioned(s.status.From) {
		deleted, err := r.deleteProvisioned(ctx, s, s.status.From, s.status.SiteKey)
		if err != nil || !deleted {
			return deletionDelay, err
		}
		return 0, nil
	}
	return 0, r.withDatabase(ctx, s, v1alpha1.MoveFromName(s.move.Namespace), func(ctx context.Context, conn *pgx.Conn) error {
		if err := schema.Unfence(ctx, conn, s.status.SiteKey); err != nil {
			return err
		}
		return schema.Erase(ctx, conn, s.status.SiteKey)
	})
}

// awaitReport connects to the databases of the move while it waits for the API servers to end their work, for
// which they need both. It migrates the database that does not serve the Site: that one may have been created
// again, or the controller is newer than the move. If there is no connection, it sets s.waiting and returns an
// error.
func (r *MoveReconciler) awaitReport(ctx context.Context, s *moveScope) error {
	s.requeueAfter = moveWait
	names := []string{v1alpha1.MoveToName(s.move.Namespace)}
	if s.status.From.Type == v1alpha1.StoragePostgres {
		names = append(names, v1alpha1.MoveFromName(s.move.Namespace))
	}
	for _, name := range names {
		serves := s.switched() == (name == v1alpha1.MoveToName(s.move.Namespace))
		err := r.withDatabase(ctx, s, name, func(ctx context.Context, conn *pgx.Conn) error {
			if serves {
				return nil // the Reconciler of Sites migrates it
			}
			return s.migrate(ctx, conn)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// migrate migrates the database of a move that does not serve the Site. If it cannot, it sets s.waiting and
// returns an error.
func (s *moveScope) migrate(ctx context.Context, conn *pgx.Conn) error {
	_, err := schema.Migrate(ctx, conn)
	switch {
	case errors.Is(err, schema.ErrNewer):
		s.waiting = &newerSchema
	case err != nil:
		s.waiting = &verdict{metav1.ConditionFalse, v1alpha1.ReasonMigrationFailed, "The tables of the database that does not serve the Site cannot be created or migrated. See the error in the controller's log."}
	}
	return err
}

// withDatabase calls do with a connection to the database in a Secret of the move. The context of do ends
// after DatabaseTimeout. If there is no connection, withDatabase sets s.waiting and returns an error.
func (r *MoveReconciler) withDatabase(ctx context.Context, s *moveScope, name string, do func(context.Context, *pgx.Conn) error) error {
	connection, there, err := r.namedConnection(ctx, name, s.status.SiteKey)
	if err != nil {
		return fmt.Errorf("read the connection in Secret %s of the move: %w", name, err)
	}
	var conn *pgx.Conn
	bad := &verdict{reason: v1alpha1.ReasonSecretNotFound, message: fmt.Sprintf("Secret %s in namespace %s, which has its connection, is missing. Restore the Secret.", name, r.ConnectionsNamespace)}
	if there {
		conn, bad = r.connect(ctx, connection)
	}
	if bad != nil {
		which, storage, serves := "new", s.to(), s.switched()
		if name == v1alpha1.MoveFromName(s.move.Namespace) {
			which, storage, serves = "former", s.status.From, !serves
		}
		message := "The " + which + " database: " + bad.message
		if there && !isProvisioned(storage) {
			message += " The move waits until it can be used. " + ifLost(serves)
		}
		s.waiting = &verdict{metav1.ConditionFalse, bad.reason, message}
		return fmt.Errorf("connect to the database in Secret %s: %s", name, bad.message) //nolint:err113 // only logged
	}
	defer closeConnection(ctx, conn)
	working, cancel := context.WithTimeout(ctx, r.DatabaseTimeout)
	defer cancel()
	return do(working, conn)
}

// ifLost returns what to do if a database of a move no longer exists. serves reports whether it serves the
// Site.
func ifLost(serves bool) string {
	if serves {
		return "If it no longer exists, restore it from a backup that was made after the switch."
	}
	return "If it no longer exists, create an empty database of the same name and owner at the same host and port."
}

// namedConnection returns the connection in a Secret of the connections namespace, if it is for the
// site key.
func (r *MoveReconciler) namedConnection(ctx context.Context, name, siteKey string) (dsn.Connection, bool, error) {
	secret, err := find[corev1.Secret](ctx, r.Live, client.ObjectKey{Namespace: r.ConnectionsNamespace, Name: name})
	if err != nil || secret == nil || secret.Labels[v1alpha1.SiteKeyLabel] != siteKey {
		return dsn.Connection{}, false, err
	}
	connection, err := dsn.Parse(secret.Data, v1alpha1.DSNKey)
	return connection, err == nil, err
}

// labelFenced sets or removes FencedLabel on a namespace. It does nothing if the namespace does not exist.
func (r *MoveReconciler) labelFenced(ctx context.Context, name string, fenced bool) error {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, there := namespace.Labels[v1alpha1.FencedLabel]; there == fenced {
		return nil
	}
	value := "null"
	if fenced {
		value = `"true"`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, v1alpha1.FencedLabel, value)
	if err := r.Client.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, patch), apply.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch the label of namespace %s: %w", name, err)
	}
	return nil
}

// sameStorage reports whether two specifications select the same storage.
func sameStorage(a, b *v1alpha1.Storage) bool { return equality.Semantic.DeepEqual(a, b) }

func isTrue(site *v1alpha1.Site, condition string) bool {
	return meta.IsStatusConditionTrue(site.Status.Conditions, condition)
}
