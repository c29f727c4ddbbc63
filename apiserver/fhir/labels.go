package fhir

import (
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/store"
)

// LabelsOf returns the labels of a stored body, on which access to the record depends. Engines find
// the same labels in the results of extract.Values.
func LabelsOf(recordType string, body store.Body) store.Labels {
	if privacy.HasLinks(recordType) {
		return privacy.Labels(recordType, extract.Values(recordType, body.JSON))
	}
	return privacy.Labels(recordType, extract.Meta(body.JSON, body.MetaOffset))
}
