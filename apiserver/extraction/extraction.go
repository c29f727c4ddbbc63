// Package extraction finds what engines index in the records of all facades.
package extraction

import (
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/ahds"
	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/fhir/search/fold"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Version is the version of the results of the Extractor. Raise it by one with every change of what
// the Extractor finds in any record, such as a new search parameter, so that servers reindex the
// Sites in Postgres. Never lower it. TestVersion fails if the results changed and Version was not
// raised.
const Version = 4

// Extractor is the store.Extractor of the records of all facades. No FHIR type has the name of an
// AHDS type, and parameters of the same name have the same meaning.
type Extractor struct{}

var _ store.Extractor = Extractor{}

// Version implements store.Extractor.
func (Extractor) Version() int64 { return Version }

// Extract implements store.Extractor.
func (Extractor) Extract(recordType string, body []byte) []store.IndexValue {
	if ahds.Has(recordType) {
		return ahds.Extract(recordType, body)
	}
	return extract.Values(recordType, body)
}

// References implements store.Extractor. Records of AHDS have no references.
func (Extractor) References(recordType string, body []byte) []store.IndexValue {
	return extract.References(recordType, body)
}

// Labels implements store.Extractor. Records of AHDS have no labels.
func (Extractor) Labels(recordType string, values []store.IndexValue) store.Labels {
	return privacy.Labels(recordType, values)
}

// IsFacet implements store.Extractor.
func (Extractor) IsFacet(param string) bool { return extract.IsFacet(param) || ahds.IsFacet(param) }

// CommonCodes implements store.Extractor. Parameters of AHDS have none.
func (Extractor) CommonCodes(recordType string) []store.CommonCode {
	return extract.CommonCodes(recordType)
}

// Ordinal implements store.Extractor. Parameters of AHDS have none.
func (Extractor) Ordinal(recordType, param string) int { return extract.Ordinal(recordType, param) }

// Parts implements store.Extractor. Parameters of AHDS have no parts.
func (Extractor) Parts(recordType, param string) []string { return extract.Parts(recordType, param) }

// Fold implements store.Extractor.
func (Extractor) Fold(original string) string { return fold.String(original) }
