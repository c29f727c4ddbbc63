package fhir

import (
	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Extract is the store.Extract of FHIR resources: it finds what searches look for.
func Extract(recordType string, body []byte) []store.Entry { return extract.Entries(recordType, body) }
