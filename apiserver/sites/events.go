package sites

import (
	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/events"
)

// eventsOf returns the types of events that changes of a Site's records cause, by record type.
func eventsOf(site *sitesv1.Site) map[string]events.Mapping {
	mappings := map[string]events.Mapping{}
	for _, source := range site.EventSources() {
		mappings[string(source.Type)] = events.Mapping{Created: string(source.Created), Updated: string(source.Updated)}
	}
	return mappings
}
