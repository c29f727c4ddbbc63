package sites

import (
	"cmp"
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
)

// webhookNames maps the id of each webhook of the namespace from which data is copied to the id of the
// webhook with the same name in the namespace to which it is copied. It is nil for a move within a
// namespace.
type webhookNames map[string]string

func (n webhookNames) of(id string) string { return cmp.Or(n[id], id) }

// apply changes deliveries as if the webhooks of the target namespace had got the events. The ids of
// the events stay, because receivers detect repeated events by them.
func (n webhookNames) apply(deliveries []delivery.Archived) {
	for i := range deliveries {
		d := &deliveries[i]
		if n[d.Webhook] != "" && n[d.Webhook] != d.Webhook {
			d.Webhook = n[d.Webhook]
			d.ID = delivery.DeliveryID(d.Event.ID, d.Webhook)
		}
		targets := make([]string, len(d.Event.Targets))
		for j, id := range d.Event.Targets {
			targets[j] = n.of(id)
		}
		d.Event.Targets = targets
	}
}

// states returns the states of circuit breakers by the ids of the webhooks of the target namespace.
func (n webhookNames) states(states map[string]delivery.State) map[string]delivery.State {
	renamed := make(map[string]delivery.State, len(states))
	for id, state := range states {
		renamed[n.of(id)] = state
	}
	return renamed
}

// renamedWebhooks returns the names for the copy of the current phase. It lists the webhooks of the
// namespace from which data is copied.
func (m *mover) renamedWebhooks(ctx context.Context, object *sitesv1.SiteMove) (webhookNames, error) {
	if object.Spec.ToSite == nil {
		return nil, nil
	}
	from, to := object.Namespace, object.Spec.ToSite.Namespace
	if m.reference.Direction == sitesv1.MoveBack {
		from, to = to, from
	}
	var hooks sitesv1.WebhookList
	if err := m.sites.client.List(ctx, &hooks, client.InNamespace(from)); err != nil {
		return nil, fmt.Errorf("list the webhooks of namespace %s: %w", from, err)
	}
	renamed := webhookNames{}
	for i := range hooks.Items {
		name := hooks.Items[i].Name
		renamed[sitesv1.ResourceID("webhooks", from, name)] = sitesv1.ResourceID("webhooks", to, name)
	}
	return renamed, nil
}
