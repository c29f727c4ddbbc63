package ahds

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/ahds/eventgroup"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/store"
)

// recordTypes are the types of this facade's records in a store.
var recordTypes = func() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.recordType)
	}
	return names
}()

// Types are the types of this facade's records in a store.
func Types() []string { return slices.Clone(recordTypes) }

// ExtractVersion rises whenever Extract finds something else in any record, or Facet tells
// something else, so that engines index their records anew.
const ExtractVersion = 1

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

// IsFacet tells the search parameters that have few codes, and divide records rather than
// find them.
func IsFacet(param string) bool {
	return slices.Contains(slot.Facets, param) || slices.Contains(eventgroup.Facets, param)
}

// Has reports whether a type is one of this facade's records.
func Has(recordType string) bool { return slices.Contains(recordTypes, recordType) }
