// Package sites turns Site objects into open stores: it watches Sites and
// SiteClaims and knows, for each siteID, which site answers to it right now. It
// is the only package besides the commands that opens an engine.
package sites

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// defaultMaxBodySize is the largest request body of a site that names none, in bytes.
const defaultMaxBodySize = 4 << 20

// Site is a site that answers to a siteID.
type Site struct {
	ID     string
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
}

// Sites knows the sites that are served.
type Sites struct {
	cache  cache.Cache
	client client.Client
	engine *cluster.Cluster

	mu sync.RWMutex
	// served has the sites by siteID, byNamespace the siteIDs by namespace.
	served      map[string]Site
	byNamespace map[string]string
}

// New makes a registry of the sites of a cluster. Run must be called for it to fill.
func New(config *rest.Config, engine *cluster.Cluster) (*Sites, error) {
	scheme := runtime.NewScheme()
	if err := sitesv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register kinds of %s: %w", sitesv1.GroupVersion, err)
	}
	objects, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a cache of sites: %w", err)
	}
	writer, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client of sites: %w", err)
	}
	return &Sites{cache: objects, client: writer, engine: engine, served: map[string]Site{}, byNamespace: map[string]string{}}, nil
}

// Run watches until ctx ends. Started is called once all sites that exist are known.
func (s *Sites) Run(ctx context.Context, started func()) error {
	synced := []toolscache.InformerSynced{}
	for _, object := range []client.Object{&sitesv1.Site{}, &sitesv1.SiteClaim{}} {
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
			s.reportUsage(ctx)
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
	site, ok := s.holder(ctx, siteID)
	s.withdraw(siteID)
	if ok {
		s.serve(s.open(siteID, &site.object, site.key))
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

func (s *Sites) open(siteID string, object *sitesv1.Site, key string) Site {
	site := Site{
		ID: siteID,
		Access: access.Site{
			Namespace: object.Namespace, Name: object.Name,
			APIServerAudience: object.Spec.Access.Kubernetes.APIServerAudience,
		},
		UpdateCreate: object.Spec.FHIR.UpdateCreate == nil || *object.Spec.FHIR.UpdateCreate,
		MaxBodySize:  defaultMaxBodySize,
		Lenient:      object.Spec.FHIR.UnknownParameters == sitesv1.UnknownParametersIgnore,
		Zone:         zoneOf(object),
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
	ready := meta.IsStatusConditionTrue(object.Status.Conditions, sitesv1.ConditionStorageReady)
	if ready && object.Status.SiteKey == key {
		site.Store = s.engine.Open(object.Namespace, key, limits(object.Spec.Storage.Cluster))
	}
	return site
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
