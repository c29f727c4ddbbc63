package fhir

import (
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Extract is the store.Extract of FHIR resources: it finds what searches look for.
func Extract(recordType string, body []byte) []store.Entry {
	if _, known := r4.TypeOf(recordType); !known {
		return nil
	}
	var entries []store.Entry
	for _, token := range r4.Tokens(body) {
		entries = append(entries, store.Entry{Param: token.Param, Value: store.Token{System: token.System, Code: token.Code}})
	}
	return entries
}
