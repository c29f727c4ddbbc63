package eventsource

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

func TestMissing(t *testing.T) {
	site := func(sources ...v1alpha1.EventSource) v1alpha1.Site {
		return v1alpha1.Site{
			ObjectMeta: metav1.ObjectMeta{Name: "harbour"}, Spec: v1alpha1.SiteSpec{Events: v1alpha1.SiteEvents{Sources: sources}},
		}
	}
	const rest = " to its spec.events.sources. Until then, only events that clients send to the API are delivered."
	for name, test := range map[string]struct {
		sites     []v1alpha1.Site
		eventType v1alpha1.EventType
		want      string
	}{
		"no Site":              {nil, "appointment.created", ""},
		"by default":           {[]v1alpha1.Site{site()}, "user.updated", ""},
		"a booking by default": {[]v1alpha1.Site{site()}, "appointment.created", "No change of a record of Site harbour produces appointment.created: add {type: AvailabilitySlot, created: appointment.created}" + rest},
		"a booking":            {[]v1alpha1.Site{site(v1alpha1.EventSource{Type: "AvailabilitySlot", Created: "appointment.created"})}, "appointment.created", ""},
		"one of two":           {[]v1alpha1.Site{site(), site(v1alpha1.EventSource{Type: "AvailabilitySlot", Updated: "appointment.updated"})}, "appointment.updated", ""},
		"staff, replaced":      {[]v1alpha1.Site{site(v1alpha1.EventSource{Type: "Patient", Created: "product.created"})}, "user.updated", "No change of a record of Site harbour produces user.updated: add {type: Practitioner, updated: user.updated}" + rest},
		"an empty list":        {[]v1alpha1.Site{site([]v1alpha1.EventSource{}...)}, "consult.created", "No change of a record of Site harbour produces consult.created: add a type of records with created: consult.created" + rest},
	} {
		t.Run(name, func(t *testing.T) {
			if got := missing(test.sites, test.eventType); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
