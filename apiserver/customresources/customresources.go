// Package customresources keeps the webhook events and webhooks of sites as the custom
// resources that they are, for the AHDS facade. It asks the API server every time, whose
// lists are consistent and come from its memory: what anybody wrote is seen at once, on
// every replica. It knows no HTTP.
package customresources

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
	"github.com/paddock-health/paddock/apiserver/store"
)

// fieldOwner is the API servers' name in managed fields.
const fieldOwner = client.FieldOwner("paddock-apiserver")

// Client reaches the custom resources of all namespaces.
type Client struct {
	objects client.Client
	now     func() time.Time
}

// New makes a client.
func New(config *rest.Config, now func() time.Time) (*Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register the API types: %w", err)
		}
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // requests are limited where they come in
	objects, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client of custom resources: %w", err)
	}
	return &Client{objects: objects, now: now}, nil
}

// WebhookEvents are those of a namespace.
func (c *Client) WebhookEvents(namespace string) *Resources {
	return &Resources{client: c, namespace: namespace, kind: events}
}

// Webhooks are those of a namespace.
func (c *Client) Webhooks(namespace string) *Webhooks {
	return &Webhooks{Resources{client: c, namespace: namespace, kind: webhooks}}
}

// Resources are those of one kind in one namespace.
type Resources struct {
	client    *Client
	namespace string
	kind      kind
}

// IDOf is the id by which the facade has an object: its name, where that is a UUID, else
// one that follows from the namespace and the name, so that it lasts when the object is
// applied anew.
func IDOf(resource, namespace, name string) string {
	if id, err := uuid.Parse(name); err == nil && id.String() == name {
		return name
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://paddock.health/"+resource+"/"+namespace+"/"+name)).String()
}

func (r *Resources) id(object client.Object) string {
	return IDOf(r.kind.resource, object.GetNamespace(), object.GetName())
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

// find reads the object with an id. Few objects have names that are not their ids: these
// are looked for among all.
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
			return fmt.Errorf("list %s: %T is no object", r.kind.resource, item)
		}
		objects = append(objects, object)
		return nil
	})
	return objects, err
}

// resource is an object as the facade has it.
func (r *Resources) resource(object client.Object) (webhook.Resource, error) {
	updated, _ := v1alpha1.ChangedAt(object)
	resource := webhook.Resource{
		ID: r.id(object), UID: string(object.GetUID()), Generation: object.GetGeneration(),
		Created: object.GetCreationTimestamp().Time, Updated: updated,
		Kept: object.GetAnnotations()[keptAnnotation],
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
