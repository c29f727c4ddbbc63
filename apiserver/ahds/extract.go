package ahds

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/ahds/eventgroup"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Types are the types of this facade's records in a store.
func Types() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.recordType)
	}
	return names
}

// Extract is the store.Extract of this facade's records: it finds what lists look for.
// Records of other types have nothing.
func Extract(recordType string, body []byte) []store.Entry {
	for _, k := range kinds() {
		if k.recordType != recordType {
			continue
		}
		s, err := k.decode(body)
		if err != nil {
			return nil // as it is not shown either
		}
		return k.entries(s.content)
	}
	return nil
}

// Facet reports whether a parameter of this facade's records has few values.
func Facet(param string) bool {
	return slices.Contains(slot.Facets, param) || slices.Contains(eventgroup.Facets, param)
}
