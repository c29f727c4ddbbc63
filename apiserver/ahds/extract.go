package ahds

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/ahds/event"
	"github.com/paddock-health/paddock/apiserver/ahds/eventgroup"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/store"
)

// recordTypes are the store types of this facade's records.
var recordTypes = func() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.recordType)
	}
	return append(names, event.Type)
}()

// Types returns the store types of this facade's records.
func Types() []string { return slices.Clone(recordTypes) }

// Extract returns the searchable values of this facade's records. It returns nil for events, which
// have none, for records of other types, and for records that cannot be decoded.
func Extract(recordType string, body []byte) []store.IndexValue {
	for _, k := range kinds() {
		if k.recordType != recordType {
			continue
		}
		s, err := k.decode(body)
		if err != nil {
			return nil // such a record cannot be read either
		}
		return k.values(s.content)
	}
	return nil
}

// IsFacet reports whether a search parameter has few distinct codes, each of which many records
// have.
func IsFacet(param string) bool {
	return slices.Contains(slot.Facets, param) || slices.Contains(eventgroup.Facets, param)
}

// Has reports whether recordType is the store type of records of this facade.
func Has(recordType string) bool { return slices.Contains(recordTypes, recordType) }
