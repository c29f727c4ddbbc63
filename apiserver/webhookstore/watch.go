package webhookstore

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Targets returns the ids of the webhooks of a namespace that receive events of a type. A webhook
// receives the events of its type if it is active and not being deleted, and if a WebhookEvent
// enables the type. Writes of this process take effect immediately, other writes when the watch
// reports them. Targets calls no Kubernetes API. The caller must not modify the slice. Errors:
// store.ErrUnavailable until Run has listed the objects.
func (c *Client) Targets(namespace, eventType string) ([]string, error) {
	select {
	case <-c.synced:
		return c.targets.of(namespace, eventType), nil
	default:
		return nil, fmt.Errorf("%w: the webhooks are not loaded yet", store.ErrUnavailable)
	}
}

// Run watches Webhooks and WebhookEvents until ctx ends. It calls started when it has listed all
// objects of both kinds.
func (c *Client) Run(ctx context.Context, started func()) error {
	var registered []toolscache.InformerSynced
	for _, object := range []client.Object{&v1alpha1.Webhook{}, &v1alpha1.WebhookEvent{}} {
		informer, err := c.watched.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch objects of type %T: %w", object, err)
		}
		registration, err := informer.AddEventHandler(c.handler())
		if err != nil {
			return fmt.Errorf("watch objects of type %T: %w", object, err)
		}
		registered = append(registered, registration.HasSynced)
	}
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), registered...) {
			close(c.synced)
			started()
		}
	}()
	return c.watched.Start(ctx)
}

func (c *Client) handler() toolscache.ResourceEventHandler {
	put := func(obj any) {
		if object, ok := obj.(client.Object); ok {
			c.targets.put(object, true)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, obj any) { put(obj) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if object, ok := obj.(client.Object); ok {
				c.targets.drop(object, true)
			}
		},
	}
}
