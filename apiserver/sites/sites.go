// Package sites watches Sites and SiteClaims, and opens the stores of Sites. For each siteID it has
// the Site that currently holds the siteID. No other package of the API servers opens a storage
// engine, except the main package in cmd/apiserver, which creates the engine of etcd-backed storage.
package sites

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/oidc"
	"github.com/paddock-health/paddock/apiserver/access/oidc/discovery"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

// ServedSite is a Site with its settings and its open store.
type ServedSite struct {
	settings.Settings
	// Store is the open store of the Site. It is nil while the storage is not ready. In a process that
	// delivers events, it is also nil for an etcd-backed Site, and while a move stops deliveries.
	Store store.Store
	// Audit is the audit log of the Site. It is nil while the storage is not ready, and in processes
	// that deliver events.
	Audit *audit.Log
	// Issuers verifies tokens of the Site's own issuers. It is nil if the Site has none, and in processes
	// that deliver events.
	Issuers *oidc.Issuers
	// Deliveries is the log of deliveries to webhooks. It is nil while the storage is not ready and, in a
	// process that delivers events, while a move stops deliveries.
	Deliveries delivery.Log
	// Tail follows Deliveries for streams. It is nil if Store is nil.
	Tail delivery.Tail
	// key is the key of the Site's data.
	key string
	// sender sends the events of an etcd-backed Site whose storage is ready. It is nil unless this
	// process delivers.
	sender Sender
	// retention is how long the Site keeps what is no longer current.
	retention store.Retention
}

// Options configure the registry of Sites and how it opens stores. All fields are required, unless they
// say otherwise.
type Options struct {
	// Cluster is the engine of etcd-backed storage. It is not required if Delivery is set.
	Cluster *cluster.Cluster
	// Namespace is the namespace in which the controller stores Secrets with database connections.
	Namespace string
	// Dial connects to the databases of Sites.
	Dial dsn.Dial
	// DialIssuers connects to the issuers of Sites.
	DialIssuers discovery.Dial
	// Tracer, if set, traces SQL statements.
	Tracer pgx.QueryTracer
	// Extractor finds the searchable values and labels that Postgres stores index.
	Extractor store.Extractor
	// Delivery, if set, makes this process deliver events and nothing else. The process then does not
	// use Cluster, reindexes no records and writes no audit logs: the API servers do.
	Delivery *Delivery
}

// Sites is the registry of served Sites. It is safe for concurrent use.
type Sites struct {
	options   Options
	cache     cache.Cache
	client    client.Client
	databases *databases

	mu sync.RWMutex
	// served has the Sites by siteID. byNamespace has the siteIDs by namespace.
	served      map[string]ServedSite
	byNamespace map[string]string
	// audits are the audit logs of the served Sites, by siteID.
	audits map[string]auditLog
	// movers do the work of the moves of Sites, by siteID.
	movers map[string]*mover
}

// New returns a registry of the Sites of a cluster. The registry is empty until Run is called.
func New(config *rest.Config, options Options) (*Sites, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{sitesv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register the API types: %w", err)
		}
	}
	objects, err := cache.New(config, cache.Options{Scheme: scheme, ByObject: map[client.Object]cache.ByObject{
		&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{options.Namespace: {}},
			Field:      fields.OneTermEqualSelector("type", sitesv1.SecretTypeDSN),
		},
	}})
	if err != nil {
		return nil, fmt.Errorf("create the cache of Sites: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // no limit: after an upgrade, conditions of every Site are written
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create the client of Sites: %w", err)
	}
	return &Sites{
		options: options, cache: objects, client: writer, databases: newDatabases(options),
		served: map[string]ServedSite{}, byNamespace: map[string]string{}, audits: map[string]auditLog{},
		movers: map[string]*mover{},
	}, nil
}

// Run watches Sites until ctx ends. It calls started once, when it knows all existing Sites and has
// the connections of those in Postgres. After 30 s, it calls started even without these
// connections.
func (s *Sites) Run(ctx context.Context, started func()) error {
	synced := []toolscache.InformerSynced{}
	for _, object := range []client.Object{&sitesv1.SiteClass{}, &sitesv1.Site{}, &sitesv1.SiteClaim{}, &corev1.Secret{}} {
		informer, err := s.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch sites: %w", err)
		}
		registration, err := informer.AddEventHandler(s.handler(ctx))
		if err != nil {
			return fmt.Errorf("watch sites: %w", err)
		}
		synced = append(synced, registration.HasSynced)
	}
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), synced...) {
			s.awaitConnections(ctx) // connections.go
			started()
			if s.options.Delivery == nil {
				s.report(ctx)
			}
		}
	}()
	return s.cache.Start(ctx)
}

func (s *Sites) handler(ctx context.Context) toolscache.ResourceEventHandler {
	changed := func(obj any) {
		if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		switch object := obj.(type) {
		case *sitesv1.Site:
			s.refresh(ctx, object.SiteID())
		case *sitesv1.SiteClaim:
			s.refresh(ctx, object.Name)
		case *sitesv1.SiteClass:
			s.classChanged(ctx, object.Name)
		case *corev1.Secret:
			s.connectionChanged(ctx, object)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed,
		UpdateFunc: func(before, obj any) {
			if !onlyClassStatus(before, obj) { // class.go
				changed(obj)
			}
		},
		DeleteFunc: changed,
	}
}

// Find returns the Site that holds a siteID. It reports false if there is none.
func (s *Sites) Find(siteID string) (ServedSite, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	site, ok := s.served[siteID]
	return site, ok
}

// InNamespace returns the Site of a namespace. It reports false if there is none.
func (s *Sites) InNamespace(namespace string) (ServedSite, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	site, ok := s.served[s.byNamespace[namespace]]
	return site, ok
}

// refresh determines which Site holds a siteID, and updates the registry. It runs in the goroutine
// of an informer, after each change of a Site, its SiteClaim, its SiteClass or its connection Secrets.
func (s *Sites) refresh(ctx context.Context, siteID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, issuers := s.served[siteID].Store, s.served[siteID].Issuers
	site, ok := s.holder(ctx, siteID)
	s.withdraw(siteID)
	if ok {
		served := s.describe(ctx, site, before)
		if s.options.Delivery == nil {
			served.Audit = s.auditOf(siteID, &site.object, served.Store)
			served.Issuers = s.openIssuers(ctx, &site.object, issuers)
		}
		s.serve(served)
	} else {
		s.endAudit(siteID)
		issuers.Close()
	}
	s.follow(ctx, siteID, site, s.served[siteID].Store)
	if old, opened := before.(*database); opened && s.served[siteID].Store != before {
		old.close()
	}
}

// serve adds or replaces a Site. The caller holds mu.
func (s *Sites) serve(site ServedSite) {
	s.served[site.ID] = site
	s.byNamespace[site.Access.Namespace] = site.ID
}

// withdraw removes the Site of a siteID, if there is one. The caller holds mu.
func (s *Sites) withdraw(siteID string) {
	namespace := s.served[siteID].Access.Namespace
	delete(s.served, siteID)
	if s.byNamespace[namespace] == siteID {
		delete(s.byNamespace, namespace)
	}
}

// heldSite is a Site, completed by its class, with the key of its data.
type heldSite struct {
	object sitesv1.Site
	key    string
	// known are the Sites in the SiteClaim: those that held the siteID before moves, and the one that
	// holds it.
	known []sitesv1.SiteReference
}

// name returns the namespace and name of the Site, for the log.
func (h heldSite) name() string { return h.object.Namespace + "/" + h.object.Name }

// holder returns the Site that holds a siteID: the object that its SiteClaim names, which is accepted
// and not being deleted. The condition Accepted shows that the controller has seen both objects. While
// a SiteMove switches to a Site of another namespace that is not accepted yet, holder returns the Site
// that held the siteID before, which serves reads only. It reports false if there is no such Site.
func (s *Sites) holder(ctx context.Context, siteID string) (heldSite, bool) {
	var claim sitesv1.SiteClaim
	if err := s.cache.Get(ctx, client.ObjectKey{Name: siteID}, &claim); err != nil {
		return heldSite{}, false
	}
	found, there := s.named(ctx, &claim, claim.Spec.SiteRef)
	if there && meta.IsStatusConditionTrue(found.object.Status.Conditions, sitesv1.ConditionAccepted) {
		return found, true
	}
	if former := claim.Spec.Former; len(former) > 0 {
		before, there := s.named(ctx, &claim, former[len(former)-1])
		if move := before.object.Status.Move; there && move != nil && move.Phase == sitesv1.MoveSwitching {
			return before, true
		}
	}
	return found, false
}

// named returns the Site of a reference in a SiteClaim, completed by its class. It reports false if the
// Site does not exist, is being deleted, has another UID or siteID, or if its class is not known.
func (s *Sites) named(ctx context.Context, claim *sitesv1.SiteClaim, ref sitesv1.SiteReference) (heldSite, bool) {
	found := heldSite{key: claim.Spec.SiteKey, known: append(slices.Clone(claim.Spec.Former), claim.Spec.SiteRef)}
	if err := s.cache.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &found.object); err != nil {
		return heldSite{}, false
	}
	if !s.completeByClass(ctx, &found.object) {
		return heldSite{}, false
	}
	return found, found.object.UID == ref.UID && found.object.SiteID() == claim.Name && found.object.DeletionTimestamp == nil
}

// describe returns the served Site of an object, without Audit and Issuers. before is its previous
// store, if any.
func (s *Sites) describe(ctx context.Context, held heldSite, before store.Store) ServedSite {
	object := &held.object
	site := ServedSite{Settings: settingsOf(object), key: held.key, retention: retentionOf(object.Spec.Retention)}
	for _, ref := range held.known {
		if ref.Namespace != object.Namespace || ref.Name != object.Name {
			site.Access.FormerAudiences += " " + access.Tenant{Namespace: ref.Namespace, Name: ref.Name}.Audience()
		}
	}
	switch {
	case object.Status.SiteKey != held.key: // the conditions are about other data
	case s.options.Delivery != nil && stopsDeliveries(object):
		before = nil // so that pauseWrites does not return it, and refresh closes it
	case object.Spec.Storage.Type == sitesv1.StoragePostgres:
		site.Store = s.openDatabase(ctx, held, before)
	case !meta.IsStatusConditionTrue(object.Status.Conditions, sitesv1.ConditionStorageReady):
	case s.options.Delivery != nil:
		s.describeDelivery(&site, object.Namespace)
	default:
		site.Store = s.options.Cluster.Open(object.Namespace, held.key, clusterLimits(object.Spec.Storage.Cluster))
	}
	site.Store = pauseWrites(object, site.Store, before)
	if site.Store != nil {
		setRetention(site.Store, site.retention)
		site.Deliveries, site.Tail = deliveriesOf(site.Store)
		if pausesWrites(object) {
			site.Deliveries = pausedDeliveries{site.Deliveries}
		}
	}
	return site
}
