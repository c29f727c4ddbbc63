package fhir

import (
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// dialect is one of the two ways to speak to the facade. This is all in which
// they differ. An answer follows Accept and _format, a body its Content-Type.
type dialect struct {
	// mediaType is what Accept, _format and Content-Type name the dialect by.
	mediaType string
	// contentType is the Content-Type of responses. R4 http.html#mime-type: the UTF-8 encoding
	// SHALL be used, and specified, for application/fhir+json.
	contentType string
	// deleteAcknowledgment answers a delete with status and statusText (contract
	// 2.5); FHIR answers with an OperationOutcome.
	deleteAcknowledgment bool
	// historyDeletions lists deletions in a history. The contract has no entry
	// without a resource (2.4).
	historyDeletions bool
	// historyEntries writes the list of entries of a history that has none too, as the
	// contract requires it (2.4). FHIR has no empty lists.
	historyEntries bool
	// historyMethods are the methods told in a history that is not FHIR's.
	// The contract knows PUT and POST only (2.4).
	historyMethods map[store.Method]store.Method
	// sortByDate takes _sort=date for _lastUpdated (contract 4.1).
	sortByDate bool
	// patientIncluded includes the patient that a search names by patient= (contract 4.1).
	patientIncluded bool
	// idFromPath takes the id of a PUT body without one from the path (contract 2.2).
	idFromPath bool
	// updateCreateRefused is the error of a PUT to an id that no record has or had, where the site
	// makes ids itself: R4 answers 405 (http.html#update), the contract 404, as for any id that is
	// not there.
	updateCreateRefused error
	// optional are elements that R4 requires and the contract does not (2.2).
	optional []string
}

var (
	contractDialect = &dialect{
		mediaType:            "application/json",
		contentType:          "application/json",
		deleteAcknowledgment: true,
		historyEntries:       true,
		historyMethods:       map[store.Method]store.Method{store.MethodPatch: store.MethodPut},
		sortByDate:           true,
		patientIncluded:      true,
		idFromPath:           true,
		updateCreateRefused:  store.ErrNotFound,
		optional:             r4.OptionalInContract,
	}
	fhirDialect = &dialect{
		mediaType:           "application/fhir+json",
		contentType:         "application/fhir+json; charset=utf-8",
		historyDeletions:    true,
		updateCreateRefused: &updateCreateError{},
	}
)

// historyMethod is how a history tells the method of a version.
func (d *dialect) historyMethod(method store.Method) store.Method {
	if told, ok := d.historyMethods[method]; ok {
		return told
	}
	return method
}
