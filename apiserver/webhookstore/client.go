// Package webhookstore stores the webhook events and webhooks of sites as custom resources, for the
// AHDS facade. Each call reads from kube-apiserver, so that every replica immediately sees the
// writes of all clients. Only the targets of events are cached, and updated by a watch, so that
// writes of records call no Kubernetes API.
package webhookstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
	"github.com/paddock-health/paddock/apiserver/store"
)

// fieldOwner is the name of Paddock's API server in managed fields.
const fieldOwner = client.FieldOwner("paddock-apiserver")

// Client reads and writes the Webhooks and WebhookEvents of all namespaces. It is safe for concurrent
// use.
type Client struct {
	objects client.Client
	now     func() time.Time
	// watched updates targets. synced is closed when targets has all objects.
	watched cache.Cache
	targets *targets
	synced  chan struct{}
}

// New returns a Client. Its method Targets returns errors until Run has listed the objects.
func New(config *rest.Config, now func() time.Time) (*Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register the API types: %w", err)
		}
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // the server limits incoming requests instead
	objects, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create the client of custom resources: %w", err)
	}
	watched, err := cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, fmt.Errorf("create the cache of webhooks: %w", err)
	}
	return &Client{objects: objects, now: now, watched: watched, targets: newTargets(), synced: make(chan struct{})}, nil
}

// WebhookEvents returns the store of the WebhookEvents of a namespace.
func (c *Client) WebhookEvents(namespace string) *Resources {
	return &Resources{client: c, namespace: namespace, kind: events}
}

// Webhooks returns the store of the Webhooks of a namespace.
func (c *Client) Webhooks(namespace string) *Webhooks {
	return &Webhooks{Resources{client: c, namespace: namespace, kind: webhooks}}
}

// Resources stores the objects of one kind, Webhook or WebhookEvent, in one namespace. It implements
// ahds.ResourceStore.
type Resources struct {
	client    *Client
	namespace string
	kind      kind
}

func (r *Resources) id(object client.Object) string {
	return v1alpha1.ResourceID(r.kind.resource, object.GetNamespace(), object.GetName())
}

// Get implements ahds.ResourceStore.
func (r *Resources) Get(ctx context.Context, id string) (webhook.Resource, error) {
	object, err := r.find(ctx, id)
	if err != nil {
		return webhook.Resource{}, err
	}
	return r.resource(object)
}

// List implements ahds.ResourceStore.
func (r *Resources) List(ctx context.Context) ([]webhook.Resource, error) {
	objects, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	resources := make([]webhook.Resource, len(objects))
	for i, object := range objects {
		if resources[i], err = r.resource(object); err != nil {
			return nil, err
		}
	}
	return resources, nil
}

// find returns the object with an id. It lists all objects only if none has the id as its name.
// Errors: store.ErrNotFound and those of errorOf.
func (r *Resources) find(ctx context.Context, id string) (client.Object, error) {
	id = strings.ToLower(id)
	object := r.kind.object()
	err := r.client.objects.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: id}, object)
	if err == nil || !apierrors.IsNotFound(err) {
		return object, r.errorOf("read", err)
	}
	objects, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if r.id(object) == id {
			return object, nil
		}
	}
	return nil, store.ErrNotFound
}

func (r *Resources) list(ctx context.Context) ([]client.Object, error) {
	list := r.kind.list()
	if err := r.client.objects.List(ctx, list, client.InNamespace(r.namespace)); err != nil {
		return nil, r.errorOf("list", err)
	}
	var objects []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("list %s: %T is not an object", r.kind.resource, item)
		}
		objects = append(objects, object)
		return nil
	})
	return objects, err
}

// resource converts an object to the resource of the facade.
func (r *Resources) resource(object client.Object) (webhook.Resource, error) {
	updated, _ := v1alpha1.ChangedAt(object)
	resource := webhook.Resource{
		ID: r.id(object), UID: string(object.GetUID()), Generation: object.GetGeneration(),
		Created: object.GetCreationTimestamp().Time, Updated: updated,
		ServiceData: object.GetAnnotations()[serviceDataAnnotation],
	}
	err := r.kind.read(object, &resource)
	if err != nil {
		return webhook.Resource{}, fmt.Errorf("read %s %s/%s: %w", r.kind.resource, object.GetNamespace(), object.GetName(), err)
	}
	if !resource.PreviousUntil.After(r.client.now()) {
		resource.PreviousUntil = time.Time{}
	}
	return resource, nil
}
