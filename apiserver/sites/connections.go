package sites

import (
	"context"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

// connectionChanged finds the Site that a connection is of.
func (s *Sites) connectionChanged(ctx context.Context, secret *corev1.Secret) {
	namespace, name, _ := strings.Cut(secret.Annotations[sitesv1.SiteAnnotation], "/")
	var site sitesv1.Site
	if err := s.cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &site); err == nil {
		s.refresh(ctx, site.SiteID())
	}
}

// connection is what the controller handed over for the data of a site.
func (s *Sites) connection(ctx context.Context, held heldSite) (dsn.Connection, bool) {
	var secret corev1.Secret
	name := client.ObjectKey{Namespace: s.options.Namespace, Name: sitesv1.ConnectionName(held.object.Namespace)}
	if err := s.cache.Get(ctx, name, &secret); err != nil || secret.Labels[sitesv1.SiteKeyLabel] != held.key {
		return dsn.Connection{}, false
	}
	connection, err := dsn.Parse(secret.Data, sitesv1.DSNKey)
	if err != nil {
		slog.ErrorContext(ctx, "a connection that was handed over cannot be used", "secret", name, "error", err)
	}
	return connection, err == nil
}

// openDatabase returns the store of a site in Postgres: the one it had, unless the
// connection has changed. It is nil where no database was made ready. Whether the database
// can be reached right now is for each call to find out.
func (s *Sites) openDatabase(ctx context.Context, held heldSite, before store.Store) store.Store {
	connection, there := s.connection(ctx, held)
	if !there || !meta.IsStatusConditionTrue(held.object.Status.Conditions, sitesv1.ConditionSchemaReady) {
		return nil
	}
	if current, opened := before.(*database); opened && current.key == held.key && current.connection == connection {
		return current
	}
	opened, err := s.databases.open(ctx, held.key, connection)
	if err != nil {
		slog.ErrorContext(ctx, "open a database", "site", held.object.Namespace+"/"+held.object.Name, "error", err)
		return nil
	}
	return opened
}
