// Package targets provides the settings of the cluster's Webhooks, with the content of their
// Secrets, to the process that delivers. It also writes the health of Webhooks to their status. The
// APIs do not use it, because they may not read Secrets.
package targets

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
)

const (
	// controller is the name of the process in Events and managed fields.
	controller = "paddock-delivery"
	// idIndex is the cache index of Webhooks by their id in the AHDS API.
	idIndex = "id"
)

// Options configure Targets.
type Options struct {
	// SecretsNamespace is where the controller stores the content of Webhooks' Secrets.
	SecretsNamespace string
	// Now returns the current time. Default: time.Now.
	Now func() time.Time
}

// Targets are the Webhooks of all namespaces. They are safe for concurrent use.
type Targets struct {
	options Options
	// hooks is the cache of Webhooks and of their Secrets' content. live reads from kube-apiserver.
	hooks     cache.Cache
	live      client.Client
	recorder  events.EventRecorder
	broadcast events.EventBroadcaster
	backlog   backlog
}

// New returns Targets. Until Run is called, webhooks cannot be read.
func New(config *rest.Config, options Options) (*Targets, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register the API types: %w", err)
		}
	}
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1 // kube-apiserver limits the rate
	live, err := client.New(unlimited, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create the client of Webhooks: %w", err)
	}
	hooks, err := cache.New(config, cache.Options{
		Scheme:   scheme,
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Namespaces: map[string]cache.Config{options.SecretsNamespace: {}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("create the cache of Webhooks: %w", err)
	}
	err = hooks.IndexField(context.Background(), &v1alpha1.Webhook{}, idIndex, func(object client.Object) []string {
		return []string{idOf(object)}
	})
	if err != nil {
		return nil, fmt.Errorf("index the cache of Webhooks: %w", err)
	}
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create the client of Events: %w", err)
	}
	broadcast := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	return &Targets{
		options: options, hooks: hooks, live: live,
		recorder: broadcast.NewRecorder(scheme, controller), broadcast: broadcast,
	}, nil
}

// Run watches Webhooks and writes Events until ctx ends.
func (t *Targets) Run(ctx context.Context) error {
	if err := t.broadcast.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	defer t.broadcast.Shutdown()
	return t.hooks.Start(ctx)
}

// WaitForSync waits until all Webhooks are known. It reports false if ctx ends earlier. Until then, methods
// that read Webhooks from the cache wait.
func (t *Targets) WaitForSync(ctx context.Context) bool { return t.hooks.WaitForCacheSync(ctx) }

// Site returns the webhooks of the Site in a namespace.
func (t *Targets) Site(namespace string) delivery.Webhooks { return site{t, namespace} }

// site implements delivery.Webhooks.
type site struct {
	*Targets
	namespace string
}

func idOf(object client.Object) string {
	return v1alpha1.ResourceID("webhooks", object.GetNamespace(), object.GetName())
}

// find returns a Webhook from the cache. It waits until the cache is complete, and fails before Run is
// called. The caller must not change the Webhook. Errors: store.ErrNotFound, those of the cache.
func (s site) find(ctx context.Context, id string) (*v1alpha1.Webhook, error) {
	list := &v1alpha1.WebhookList{}
	if err := s.hooks.List(ctx, list, client.InNamespace(s.namespace), client.MatchingFields{idIndex: id}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("look up webhook %s: %w", id, err)
	}
	return existing(list.Items)
}

// findLive is like find, but reads the Webhooks of the namespace from kube-apiserver.
func (s site) findLive(ctx context.Context, id string) (*v1alpha1.Webhook, error) {
	list := &v1alpha1.WebhookList{}
	if err := s.live.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return nil, fmt.Errorf("look up webhook %s: %w", id, err)
	}
	return existing(slices.DeleteFunc(list.Items, func(hook v1alpha1.Webhook) bool { return idOf(&hook) != id }))
}

// existing returns the first of the Webhooks that is not being deleted. Errors: store.ErrNotFound.
func existing(hooks []v1alpha1.Webhook) (*v1alpha1.Webhook, error) {
	for i := range hooks {
		if hooks[i].DeletionTimestamp.IsZero() {
			return &hooks[i], nil
		}
	}
	return nil, store.ErrNotFound
}

// Ordered reports whether a webhook of the namespace gets the events of a subject one at a time, in
// order. It is true for a webhook that the cache does not have, because the cache may be outdated.
func (t *Targets) Ordered(namespace, id string) bool {
	hook, err := site{t, namespace}.find(context.Background(), id)
	return err != nil || hook.Spec.Ordering == v1alpha1.OrderingPerSubject
}
