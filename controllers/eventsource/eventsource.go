// Package eventsource explains in the conditions of Webhooks and WebhookEvents that no change of a
// record produces events of their type.
package eventsource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// +kubebuilder:rbac:groups=paddock.health,resources=sites,verbs=get;list;watch

// Missing returns a message if there are Sites in the namespace and no change of their records produces
// events of the type. The message has the remedy. Otherwise Missing returns "".
func Missing(ctx context.Context, reader client.Reader, namespace string, eventType v1alpha1.EventType) (string, error) {
	sites := &v1alpha1.SiteList{}
	if err := reader.List(ctx, sites, client.InNamespace(namespace)); err != nil {
		return "", fmt.Errorf("list the Sites of namespace %s: %w", namespace, err)
	}
	return missing(sites.Items, eventType), nil
}

func missing(sites []v1alpha1.Site, eventType v1alpha1.EventType) string {
	if len(sites) == 0 || slices.ContainsFunc(sites, func(site v1alpha1.Site) bool { return produces(&site, eventType) }) {
		return ""
	}
	names := make([]string, len(sites))
	for i := range sites {
		names[i] = sites[i].Name
	}
	slices.Sort(names)
	return fmt.Sprintf("No change of a record of Site %s produces %s: add %s to its spec.events.sources. Until then, only events that clients send to the API are delivered.",
		names[0], eventType, sourceOf(eventType))
}

func produces(site *v1alpha1.Site, eventType v1alpha1.EventType) bool {
	return slices.ContainsFunc(site.EventSources(), func(source v1alpha1.EventSource) bool {
		return source.Created == eventType || source.Updated == eventType
	})
}

// sourceOf describes the source that a Site needs for events of the type. For events about appointments
// and users it returns the source as YAML, with the type of their records. For other events, the
// administrator chooses the type.
func sourceOf(eventType v1alpha1.EventType) string {
	subject, change, _ := strings.Cut(string(eventType), ".")
	switch subject {
	case "appointment":
		return fmt.Sprintf("{type: AvailabilitySlot, %s: %s}", change, eventType)
	case "user":
		return fmt.Sprintf("{type: Practitioner, %s: %s}", change, eventType)
	default:
		return fmt.Sprintf("a type of records with %s: %s", change, eventType)
	}
}
