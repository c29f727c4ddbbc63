package sites

import (
	"context"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

// connectionChanged refreshes the Site to which a connection Secret belongs.
func (s *Sites) connectionChanged(ctx context.Context, secret *corev1.Secret) {
	namespace, name, _ := strings.Cut(secret.Annotations[sitesv1.SiteAnnotation], "/")
	var site sitesv1.Site
	if err := s.cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &site); err == nil {
		s.refresh(ctx, site.SiteID())
	}
}

// connection returns the connection that the controller stored for the data of a Site. It reports
// false if there is none or it is invalid.
func (s *Sites) connection(ctx context.Context, held heldSite) (dsn.Connection, bool) {
	return s.namedConnection(ctx, held, sitesv1.ConnectionName(held.object.Namespace))
}

// namedConnection returns the connection in the Secret with a name. It reports false if there is no
// such Secret for the data of the Site, or if the connection in it is invalid.
func (s *Sites) namedConnection(ctx context.Context, held heldSite, secretName string) (dsn.Connection, bool) {
	var secret corev1.Secret
	name := client.ObjectKey{Namespace: s.options.Namespace, Name: secretName}
	if err := s.cache.Get(ctx, name, &secret); err != nil || secret.Labels[sitesv1.SiteKeyLabel] != held.key {
		return dsn.Connection{}, false
	}
	connection, err := dsn.Parse(secret.Data, sitesv1.DSNKey)
	if err != nil {
		slog.ErrorContext(ctx, "a connection Secret from the controller is invalid and is not used", "site", held.name(), "secret", name, "error", err)
	}
	return connection, err == nil
}

// handoverTimeout limits how long a starting server waits for the controller's connection Secrets.
// At the limit it starts without them, in case the condition of a Site is wrong.
const handoverTimeout = 30 * time.Second

// awaitConnections blocks until every Site whose database is ready has a connection, but at most for
// handoverTimeout. After an upgrade that moves the Secrets, a replica without them must not become
// ready, because it would replace one that can serve these Sites.
func (s *Sites) awaitConnections(ctx context.Context) {
	missing := ""
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, handoverTimeout, true, func(ctx context.Context) (bool, error) {
		var claims sitesv1.SiteClaimList
		if err := s.cache.List(ctx, &claims); err != nil {
			return false, err
		}
		for _, claim := range claims.Items {
			held, ok := s.holder(ctx, claim.Name)
			if !ok || held.object.Spec.Storage.Type != sitesv1.StoragePostgres || held.object.Status.SiteKey != held.key ||
				!meta.IsStatusConditionTrue(held.object.Status.Conditions, sitesv1.ConditionSchemaReady) {
				continue
			}
			if _, there := s.connection(ctx, held); !there {
				missing = held.name()
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "starting before the connection Secrets of all sites were found; a site without one is not served until the controller stores it", "site", missing, "error", err)
	}
}

// openDatabase returns the store of a Site in Postgres: before if the connection is the same, and
// nil while no database is ready. It does not wait for a connection: the calls of the store do.
func (s *Sites) openDatabase(ctx context.Context, held heldSite, before store.Store) store.Store {
	connection, there := s.connection(ctx, held)
	if !there || !meta.IsStatusConditionTrue(held.object.Status.Conditions, sitesv1.ConditionSchemaReady) {
		return nil
	}
	if current, opened := before.(*database); opened && current.key == held.key && current.connection == connection {
		return current
	}
	work := func(ctx context.Context, d *database) {
		go d.keepRetention(ctx, held.name(), s.databases.retained)
		d.keepIndexed(ctx, held.name(), func(records int64) { s.databases.reindexed.Add(records) })
	}
	if s.options.Delivery != nil {
		work = func(ctx context.Context, d *database) {
			sender := s.options.Delivery.Sender(held.object.Namespace, held.object.SiteID(), databaseDeliveries{d})
			d.deliver(ctx, held.name(), sender)
		}
	}
	opened, err := s.databases.open(ctx, held.key, connection, work)
	if err != nil {
		slog.ErrorContext(ctx, "cannot open the database of a site", "site", held.name(), "error", err)
		return nil
	}
	return opened
}
