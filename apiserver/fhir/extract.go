package fhir

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/store"
)

// ExtractVersion rises whenever Extract finds something else in any resource, or IsFacet
// tells something else, so that engines index their records anew. A test compares what is
// found in HL7's examples.
const ExtractVersion = 1

// Extract is the store.Extract of FHIR resources: it finds what searches look for.
func Extract(recordType string, body []byte) []store.Entry { return extract.Entries(recordType, body) }

// References finds the references among what Extract finds.
func References(recordType string, body []byte) []store.Entry {
	return extract.References(recordType, body)
}

// IsFacet tells the search parameters that have few codes, and divide records rather than
// find them.
func IsFacet(param string) bool { return slices.Contains(facets, param) }

var facets = []string{"active", "deceased", "gender"}
