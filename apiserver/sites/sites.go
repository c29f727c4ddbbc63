// Package sites turns Site objects into open stores: it watches Sites and
// SiteClaims and knows, for each siteID, which site answers to it right now. It
// is the only package besides the commands that opens an engine.
package sites

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/cors"
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
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/apiserver/web"
)

// defaultMaxBodySize is the largest request body of a site that names none, in bytes.
const defaultMaxBodySize = 4 << 20

// Site is a site that answers to a siteID.
type Site struct {
	ID string
	// URL is the site's own address, empty where it has none.
	URL    string
	Access access.Site
	// Store is nil while the storage is not ready.
	Store        store.Store
	UpdateCreate bool
	// MaxBodySize is in bytes.
	MaxBodySize int64
	// MaxBundleEntries is 0 where the Site does not say.
	MaxBundleEntries int
	// MaxIncluded is 0 where the Site does not say.
	MaxIncluded int
	// Lenient ignores unknown search parameters.
	Lenient bool
	// Zone is that of times without one; nil is UTC.
	Zone *time.Location
	// EnforceReferences refuses references to records that are not there.
	EnforceReferences bool
	// CORS answers browsers in pages of other origins; nil where none are allowed.
	CORS *cors.Cors
}

// Options say how stores are opened.
type Options struct {
	// Cluster is the engine of etcd-backed storage.
	Cluster *cluster.Cluster
	// Namespace is the operator's own, where the connections to databases are.
	Namespace string
	// Dial reaches the databases that Sites name.
	Dial dsn.Dial
	// Tracer, unless nil, is told of the statements that go to databases.
	Tracer pgx.QueryTracer
	// Extraction finds the searchable values of records in Postgres.
	Extraction Extraction
}

// Extraction finds the searchable values of records. See postgres.Options.
type Extraction struct {
	// Version rises whenever it finds something else than before.
	Version    int64
	Extract    store.Extract
	References store.Extract
	Facet      func(param string) bool
	Fold       func(string) string
}

// Sites knows the sites that are served.
type Sites struct {
	options   Options
	cache     cache.Cache
	client    client.Client
	databases *databases

	mu sync.RWMutex
	// served has the sites by siteID, byNamespace the siteIDs by namespace.
	served      map[string]Site
	byNamespace map[string]string
}

// New makes a registry of the sites of a cluster. Run must be called for it to fill.
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
		return nil, fmt.Errorf("make a cache of sites: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // after an upgrade every site has something to report
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client of sites: %w", err)
	}
	return &Sites{
		options: options, cache: objects, client: writer, databases: newDatabases(options),
		served: map[string]Site{}, byNamespace: map[string]string{},
	}, nil
}

// Run watches until ctx ends. Started is called once all sites that exist are known.
func (s *Sites) Run(ctx context.Context, started func()) error {
	synced := []toolscache.InformerSynced{}
	for _, object := range []client.Object{&sitesv1.Site{}, &sitesv1.SiteClaim{}, &corev1.Secret{}} {
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
			started()
			s.report(ctx)
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
		case *corev1.Secret:
			s.connectionChanged(ctx, object)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, obj any) { changed(obj) },
		DeleteFunc: changed,
	}
}

// Find returns the site that answers to a siteID, if there is one.
func (s *Sites) Find(siteID string) (Site, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	site, ok := s.served[siteID]
	return site, ok
}

// InNamespace returns the site of a namespace, if there is one.
func (s *Sites) InNamespace(namespace string) (Site, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	site, ok := s.served[s.byNamespace[namespace]]
	return site, ok
}

// refresh works out anew who answers to a siteID. It runs on the goroutine of an
// informer; whichever of the two objects comes last completes the picture.
func (s *Sites) refresh(ctx context.Context, siteID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.served[siteID].Store
	site, ok := s.holder(ctx, siteID)
	s.withdraw(siteID)
	if ok {
		s.serve(s.describe(ctx, siteID, site, before))
	}
	if old, opened := before.(*database); opened && s.served[siteID].Store != before {
		old.close()
	}
}

// serve takes a site in. The caller holds mu.
func (s *Sites) serve(site Site) {
	s.served[site.ID] = site
	s.byNamespace[site.Access.Namespace] = site.ID
}

// withdraw takes the site of a siteID out, if there is one. The caller holds mu.
func (s *Sites) withdraw(siteID string) {
	namespace := s.served[siteID].Access.Namespace
	delete(s.served, siteID)
	if s.byNamespace[namespace] == siteID {
		delete(s.byNamespace, namespace)
	}
}

// heldSite is a Site with the key of its data.
type heldSite struct {
	object sitesv1.Site
	key    string
}

// holder returns the Site that holds a siteID: the very object that its SiteClaim
// names, accepted and not being deleted. The claim alone would do for truth; the
// condition adds that the controller has seen both.
func (s *Sites) holder(ctx context.Context, siteID string) (heldSite, bool) {
	var claim sitesv1.SiteClaim
	if err := s.cache.Get(ctx, client.ObjectKey{Name: siteID}, &claim); err != nil {
		return heldSite{}, false
	}
	found := heldSite{key: claim.Spec.SiteKey}
	name := client.ObjectKey{Namespace: claim.Spec.SiteRef.Namespace, Name: claim.Spec.SiteRef.Name}
	if err := s.cache.Get(ctx, name, &found.object); err != nil {
		return heldSite{}, false
	}
	held := claim.HeldBy(&found.object) && found.object.SiteID() == siteID && found.object.DeletionTimestamp == nil
	return found, held && meta.IsStatusConditionTrue(found.object.Status.Conditions, sitesv1.ConditionAccepted)
}

// describe makes what is served of a Site. Before is the store that it had, if any.
func (s *Sites) describe(ctx context.Context, siteID string, held heldSite, before store.Store) Site {
	object := &held.object
	site := Site{
		ID:  siteID,
		URL: urlOf(object),
		Access: access.Site{
			Namespace: object.Namespace, Name: object.Name,
			APIServerAudience: object.Spec.Access.Kubernetes.APIServerAudience,
		},
		UpdateCreate: object.Spec.FHIR.UpdateCreate == nil || *object.Spec.FHIR.UpdateCreate,
		MaxBodySize:  defaultMaxBodySize,
		Lenient:      object.Spec.FHIR.UnknownParameters == sitesv1.UnknownParametersIgnore,
		Zone:         zoneOf(object),

		EnforceReferences: object.Spec.FHIR.ReferentialIntegrity == sitesv1.ReferentialIntegrityEnforce,
	}
	if size := object.Spec.Limits.MaxBodySize; size != nil {
		site.MaxBodySize = size.Value()
	}
	if entries := object.Spec.Limits.MaxBundleEntries; entries != nil {
		site.MaxBundleEntries = int(*entries)
	}
	if included := object.Spec.Limits.MaxIncluded; included != nil {
		site.MaxIncluded = int(*included)
	}
	if object.Spec.CORS != nil {
		site.CORS = web.AllowOrigins(originsOf(object.Spec.CORS))
	}
	switch {
	case object.Status.SiteKey != held.key: // the conditions speak of other data
	case object.Spec.Storage.Type == sitesv1.StoragePostgres:
		site.Store = s.openDatabase(ctx, held, before)
	case meta.IsStatusConditionTrue(object.Status.Conditions, sitesv1.ConditionStorageReady):
		site.Store = s.options.Cluster.Open(object.Namespace, held.key, limits(object.Spec.Storage.Cluster))
	}
	return site
}

// urlOf is the site's address as the controller found it allowed.
func urlOf(object *sitesv1.Site) string {
	if object.Spec.Exposure == nil || !strings.HasSuffix(object.Status.URL, "/site/"+object.SiteID()) {
		return ""
	}
	return object.Status.URL
}

func originsOf(spec *sitesv1.CORS) []string {
	origins := make([]string, len(spec.AllowOrigins))
	for i, origin := range spec.AllowOrigins {
		origins[i] = string(origin)
	}
	return origins
}

// zoneOf is the site's zone. The API server has checked its name; where this program
// knows fewer names, times are in UTC.
func zoneOf(object *sitesv1.Site) *time.Location {
	zone, err := time.LoadLocation(object.Spec.TimeZone)
	if err != nil {
		slog.Error("the site's time zone is unknown here, UTC is used", "site", object.Namespace+"/"+object.Name, "error", err)
		return nil
	}
	return zone
}

func limits(spec *sitesv1.ClusterStorage) cluster.Limits {
	limits := cluster.DefaultLimits
	if spec == nil {
		return limits
	}
	if spec.MaxRecords != nil {
		limits.MaxRecords = int64(*spec.MaxRecords)
	}
	if spec.MaxVersions != nil {
		limits.MaxVersions = int(*spec.MaxVersions)
	}
	if spec.MaxObjectSize != nil {
		limits.MaxObjectBytes = spec.MaxObjectSize.Value()
	}
	if spec.MaxSize != nil {
		limits.MaxBytes = spec.MaxSize.Value()
	}
	return limits
}
