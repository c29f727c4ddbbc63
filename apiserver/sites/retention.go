package sites

import (
	"context"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// retentionInterval is the time between two passes that remove what a Site in Postgres no longer
// keeps.
const retentionInterval = 10 * time.Minute

// retentionOf returns the retention of a Site.
func retentionOf(spec *sitesv1.Retention) store.Retention {
	duration := func(d *metav1.Duration) time.Duration {
		if d == nil {
			return 0
		}
		return d.Duration
	}
	if spec == nil {
		return store.Retention{}
	}
	return store.Retention{
		Tombstones: duration(spec.Tombstones), Versions: duration(spec.Versions), Deliveries: duration(spec.Deliveries),
	}
}

// setRetention sets the retention of an open store.
func setRetention(opened store.Store, retention store.Retention) {
	switch opened := opened.(type) {
	case *database:
		opened.retention.Store(&retention)
		if site := opened.site.Load(); site != nil {
			site.SetRetention(retention)
		}
	case *cluster.Store:
		opened.SetRetention(retention)
	}
}

// DeliveryRetention returns how long the failed and undelivered deliveries of the etcd-backed Site
// in a namespace that has the site key are kept. If the Site does not set a retention of
// deliveries, or if there is no such Site, it returns 0. This means the default of 7 days.
func (s *Sites) DeliveryRetention(namespace, key string) time.Duration {
	site, served := s.InNamespace(namespace)
	if !served || site.key != key {
		return 0
	}
	return site.retention.Deliveries
}

// keepRetention removes what the Site no longer keeps, every retentionInterval until ctx ends. It
// calls removed with what each pass has removed. One API server at a time does this for a Site. name is
// the namespace and name of the Site, for the log.
func (d *database) keepRetention(ctx context.Context, name string, removed func(store.Retained)) {
	for {
		if retention := d.retention.Load(); retention != nil {
			done, err := with(ctx, d, func(site *postgres.Store) (store.Retained, error) {
				return site.Retain(ctx, retention.Cutoffs(time.Now()))
			})
			removed(done)
			if err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "cannot enforce the retention of a site; the server will retry", "site", name, "siteKey", d.key, "error", err)
			}
		}
		sleep(ctx, retentionInterval)
		if ctx.Err() != nil {
			return
		}
	}
}

// retained counts what retention has removed in the databases of this process.
func (d *databases) retained(removed store.Retained) {
	d.retainedTombstones.Add(removed.Tombstones)
	d.retainedVersions.Add(removed.Versions)
}

// Retained returns the numbers of tombstones and superseded versions of all Sites that this process
// has removed because of their retention.
func (s *Sites) Retained() store.Retained {
	removed := store.Retained{Tombstones: s.databases.retainedTombstones.Load(), Versions: s.databases.retainedVersions.Load()}
	if s.options.Cluster != nil {
		removed = removed.Plus(s.options.Cluster.Retained())
	}
	return removed
}
