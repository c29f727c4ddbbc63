package deliveries

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// Target makes the attempts of the deliveries of a site to its webhooks.
type Target interface {
	delivery.Attempter
	// After returns the breaker state of a webhook after an attempt. state is the breaker state
	// before the attempt.
	After(state delivery.State, attempt delivery.Attempt) delivery.State
	// Ordered reports whether a webhook gets the events of a subject one after the other.
	Ordered(webhook string) bool
}

// Options are the settings of a Runner. A field that is not required and has its zero value gets its
// default.
type Options struct {
	// Open returns the Target of the site with a site key in a namespace. If ok is false, the events of
	// the site wait. Open is called often and must not block. Required.
	Open func(namespace, key string) (target Target, ok bool)
	// Namespace is the namespace of the Leases by which replicas share the work. Required.
	Namespace string
	// Identity identifies this replica among all replicas. It is a part of the name of its Lease.
	// Default: the host name and random letters.
	Identity string
	// Shards is the number of parts into which the namespaces of sites are divided. It must be the
	// same in all replicas. Default: 8.
	Shards int
	// LeaseDuration is the time without a renewal after which other replicas take the shards of a
	// replica. Default: 15 s.
	LeaseDuration time.Duration
	// PerSite and PerWebhook are the maximum numbers of concurrent attempts in a namespace and for a
	// webhook. At the limit, attempts wait. A failing or new webhook gets at most 2, or 1 after its
	// breaker was opened. Defaults: 64 and 8.
	PerSite, PerWebhook int
	// HoldTime is how long an event may stay in its Record while the first attempts of its deliveries
	// are made. After that, WebhookDeliveries are created for the deliveries that have not succeeded.
	// Default: 2 s.
	HoldTime time.Duration
	// Retention returns how long the failed and undelivered deliveries of a site are kept, or 0 for the
	// default, which is 7 days. If it is nil, the default applies to all sites.
	Retention func(namespace, key string) time.Duration
	// Clock is the clock by which attempts are due. Default: clock.RealClock.
	Clock clock.Clock
}

// resyncInterval is the time between two complete lists, which find the objects that watches
// missed.
const resyncInterval = 30 * time.Second

// Runner relays the events in Records, and makes the attempts of deliveries that are due. At any time,
// at most one replica works on the sites of a namespace.
type Runner struct {
	options  Options
	client   *objects.Client
	metadata metadata.Interface
	leases   coordinationclient.LeasesGetter

	resync chan struct{}

	mu sync.Mutex
	// owned are the shards that this replica has, by number.
	owned map[int]*shard
}

// shard has the queues of the namespaces in one shard.
type shard struct {
	lease  *heldLease
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	// queues are the queues by namespace.
	queues map[string]*queue
}

// New returns a Runner. It fails only if the host name cannot be read or a client cannot be made.
func New(config *rest.Config, options Options) (*Runner, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("get the host name: %w", err)
	}
	options.Identity = cmp.Or(options.Identity, strings.ToLower(host+"-"+rand.Text()[:8]))
	options.Shards = cmp.Or(options.Shards, 8)
	options.LeaseDuration = cmp.Or(options.LeaseDuration, 15*time.Second)
	options.PerSite, options.PerWebhook = cmp.Or(options.PerSite, 64), cmp.Or(options.PerWebhook, 8)
	options.HoldTime = cmp.Or(options.HoldTime, 2*time.Second)
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	r := &Runner{options: options, resync: make(chan struct{}, 1), owned: map[int]*shard{}}
	if r.client, err = objects.New(config); err != nil {
		return nil, err
	}
	if r.metadata, err = newMetadataClient(config); err != nil {
		return nil, err
	}
	if r.leases, err = coordinationclient.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client for leases: %w", err)
	}
	return r, nil
}

// Run takes shards and delivers the events of the sites in them until ctx ends. It returns when all
// attempts have ended and the shards are released.
func (r *Runner) Run(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { r.watchEvents(ctx) })
	work.Go(func() { watchDeliveries(ctx, r.metadata, deliveryFeed{r}) })
	work.Go(func() { r.relist(ctx) })
	shared := leases{
		client: r.leases.Leases(r.options.Namespace), identity: r.options.Identity,
		shards: r.options.Shards, duration: r.options.LeaseDuration,
		start: func(n int, lease *heldLease) { r.start(ctx, n, lease) }, stop: r.stop,
	}
	shared.run(ctx)
	work.Wait()
}

func (r *Runner) start(ctx context.Context, n int, lease *heldLease) {
	s := &shard{lease: lease, queues: map[string]*queue{}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	r.mu.Lock()
	r.owned[n] = s
	r.mu.Unlock()
	select {
	case r.resync <- struct{}{}:
	default:
	}
}

func (r *Runner) stop(n int) {
	r.mu.Lock()
	s := r.owned[n]
	delete(r.owned, n)
	r.mu.Unlock()
	s.cancel()
	s.work.Wait()
}

// queue returns the queue of a namespace, and starts it if it is new. It returns nil if this
// replica does not have the shard of the namespace.
func (r *Runner) queue(namespace string) *queue {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.owned[shardOf(namespace, r.options.Shards)]
	if s == nil {
		return nil
	}
	q := s.queues[namespace]
	if q == nil {
		q = newQueue(r, namespace, s.lease)
		s.queues[namespace] = q
		s.work.Go(func() { q.run(s.ctx) })
	}
	return q
}

// relist lists all Records with events and all WebhookDeliveries when this replica takes a shard,
// and every resyncInterval.
func (r *Runner) relist(ctx context.Context) {
	ticker := time.NewTicker(resyncInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.resync:
		case <-ticker.C:
		}
		// Records must come first, because a queue must relay events before it accepts deliveries.
		err := r.eachMetadata(ctx, objects.Records, metav1.NamespaceAll, eventsSelector, r.expectList)
		if err == nil {
			err = r.eachMetadata(ctx, objects.Delivery, metav1.NamespaceAll, "", deliveryFeed{r}.Add)
		}
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "cannot list events and deliveries; the server will retry", "error", err)
		}
	}
}

func (r *Runner) eachMetadata(ctx context.Context, resource, namespace, selector string, visit func(any) error) error {
	options := metav1.ListOptions{FieldSelector: selector, Limit: pageSize}
	for {
		requestCtx, cancel := context.WithTimeout(ctx, objects.Timeout)
		page, err := r.metadata.Resource(recordsv1.GroupVersion.WithResource(resource)).Namespace(namespace).List(requestCtx, options)
		cancel()
		if err != nil {
			return fmt.Errorf("list %s: %w", resource, err)
		}
		for i := range page.Items {
			if err := visit(&page.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// expectList makes the queue of a Record's namespace list the Records with events.
func (r *Runner) expectList(obj any) error {
	meta, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("list of %s: unexpected object of type %T", objects.Records, obj)
	}
	if q := r.queue(meta.Namespace); q != nil {
		q.expectList()
	}
	return nil
}

// deliveryFeed offers the WebhookDeliveries of a namespace to its queue. It implements
// cache.ReflectorStore.
type deliveryFeed struct{ *Runner }

// Add implements cache.ReflectorStore.
func (f deliveryFeed) Add(obj any) error {
	name, s, err := observed(obj)
	if err != nil {
		return err
	}
	if q := f.queue(name.Namespace); q != nil {
		q.offer(name.Name, obj.(*metav1.PartialObjectMetadata).ResourceVersion, s)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (f deliveryFeed) Update(obj any) error { return f.Add(obj) }

// Delete implements cache.ReflectorStore. The queue reads the WebhookDelivery before the next attempt,
// and then notices the deletion.
func (f deliveryFeed) Delete(obj any) error {
	name, _, err := observed(obj)
	if err != nil {
		return err
	}
	if q := f.queue(name.Namespace); q != nil {
		q.forgetObject(name.Name)
	}
	return nil
}

// Replace implements cache.ReflectorStore. Any WebhookDelivery may have been deleted before the list.
func (f deliveryFeed) Replace(list []any, _ string) error {
	for _, q := range f.running(metav1.NamespaceAll) {
		q.forgetObjects()
	}
	return each(list, f.Add)
}

// Resync implements cache.ReflectorStore.
func (f deliveryFeed) Resync() error { return nil }

func each(list []any, visit func(any) error) error {
	for _, obj := range list {
		if err := visit(obj); err != nil {
			return err
		}
	}
	return nil
}
