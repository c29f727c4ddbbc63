package deliveries

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// Backlog counts the WebhookDeliveries of each site. All counts are 0 until Run has listed the
// WebhookDeliveries. It is safe for concurrent use.
type Backlog struct {
	client metadata.Interface

	mu    sync.Mutex
	known map[types.NamespacedName]counted
	sites map[site]counts
}

// site identifies a site by its namespace and the key of its data.
type site struct{ namespace, key string }

// counted is a WebhookDelivery in the counts of its site.
type counted struct {
	site    site
	pending bool
}

// counts are the numbers of pending deliveries and of dead letters of a site.
type counts struct{ pending, kept int64 }

// NewBacklog returns a Backlog. It counts only while Run is running.
func NewBacklog(config *rest.Config) (*Backlog, error) {
	client, err := newMetadataClient(config)
	if err != nil {
		return nil, err
	}
	return &Backlog{client: client, known: map[types.NamespacedName]counted{}, sites: map[site]counts{}}, nil
}

// Run keeps the counts current by a watch until ctx ends.
func (b *Backlog) Run(ctx context.Context) { watchDeliveries(ctx, b.client, b) }

// Count returns the number of pending deliveries of the site with a site key in a namespace, and in
// kept the number of its dead letters.
func (b *Backlog) Count(namespace, key string) (pending, kept int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.sites[site{namespace, key}]
	return c.pending, c.kept
}

// set replaces the counted state of a WebhookDelivery. now is nil if the WebhookDelivery was
// deleted. The caller holds mu.
func (b *Backlog) set(name types.NamespacedName, now *counted) {
	if before, ok := b.known[name]; ok {
		b.add(before, -1)
		delete(b.known, name)
	}
	if now != nil {
		b.add(*now, 1)
		b.known[name] = *now
	}
}

func (b *Backlog) add(c counted, n int64) {
	total := b.sites[c.site]
	if c.pending {
		total.pending += n
	} else {
		total.kept += n
	}
	if total == (counts{}) {
		delete(b.sites, c.site)
		return
	}
	b.sites[c.site] = total
}

// Add implements cache.ReflectorStore.
func (b *Backlog) Add(obj any) error { return b.Update(obj) }

// Update implements cache.ReflectorStore.
func (b *Backlog) Update(obj any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.take(obj)
}

// take counts a state of a WebhookDelivery. The caller holds mu.
func (b *Backlog) take(obj any) error {
	name, s, err := observed(obj)
	if err != nil {
		return err
	}
	b.set(name, &counted{site{name.Namespace, s.SiteKey}, s.Status == recordsv1.DeliveryPending})
	return nil
}

// Delete implements cache.ReflectorStore.
func (b *Backlog) Delete(obj any) error {
	name, _, err := observed(obj)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(name, nil)
	return nil
}

// Replace implements cache.ReflectorStore.
func (b *Backlog) Replace(list []any, _ string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.known)
	clear(b.sites)
	return each(list, b.take)
}

// Resync implements cache.ReflectorStore.
func (b *Backlog) Resync() error { return nil }

// observed returns the name of a WebhookDelivery and its summary. The summary is empty if it cannot
// be decoded.
func observed(obj any) (types.NamespacedName, summary, error) {
	meta, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return types.NamespacedName{}, summary{}, fmt.Errorf("watch of %s: unexpected object of type %T", objects.Delivery, obj)
	}
	s, _ := summaryOf(meta)
	return types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}, s, nil
}

func newMetadataClient(config *rest.Config) (metadata.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // for the reason given in objects.New
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for metadata: %w", err)
	}
	return client, nil
}

// watchDeliveries watches the metadata of the WebhookDeliveries in all namespaces until ctx ends, and
// passes the events of the watch to a store.
func watchDeliveries(ctx context.Context, client metadata.Interface, store cache.ReflectorStore) {
	of := client.Resource(recordsv1.GroupVersion.WithResource(objects.Delivery))
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return of.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return of.Watch(ctx, options)
		},
	}
	objects.RunReflector(ctx, objects.Delivery, listWatch, &metav1.PartialObjectMetadata{}, store)
}
