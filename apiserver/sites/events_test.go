package sites

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/events"
)

func TestEventsOf(t *testing.T) {
	for name, test := range map[string]struct {
		sources []sitesv1.EventSource
		want    map[string]events.Mapping
	}{
		"nothing said": {nil, map[string]events.Mapping{"Practitioner": {Created: "user.created", Updated: "user.updated"}}},
		"none":         {[]sitesv1.EventSource{}, map[string]events.Mapping{}},
		"others": {
			[]sitesv1.EventSource{{Type: "AvailabilitySlot", Updated: "appointment.updated"}, {Type: "Patient", Created: "consult.created"}},
			map[string]events.Mapping{"AvailabilitySlot": {Updated: "appointment.updated"}, "Patient": {Created: "consult.created"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			site := &sitesv1.Site{Spec: sitesv1.SiteSpec{Events: sitesv1.SiteEvents{Sources: test.sources}}}
			if diff := cmp.Diff(test.want, eventsOf(site)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
