package fhir

import (
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// dialect is one of the two variants of the facade: that of the contract or that of FHIR. Its
// fields have all differences between the two. Accept and _format choose the dialect of a response,
// Content-Type that of a request body.
type dialect struct {
	// mediaType is the media type in Accept, _format and Content-Type.
	mediaType string
	// contentType is the Content-Type of responses. R4 http.html#mime-type: UTF-8 SHALL be used,
	// and specified, for application/fhir+json.
	contentType string
	// deleteAcknowledgment answers a delete with status and statusText (contract 2.5). FHIR answers
	// with an OperationOutcome.
	deleteAcknowledgment bool
	// historyDeletions lists deletions in a history. The contract has no entry without a resource
	// (2.4).
	historyDeletions bool
	// historyEntries writes an empty list of entries if a history has none, as the contract
	// requires (2.4). FHIR forbids empty lists.
	historyEntries bool
	// historyMethods replaces methods in a history. The contract has only PUT and POST (2.4).
	historyMethods map[store.Method]store.Method
	// sortByDate accepts _sort=date for _lastUpdated (contract 4.1).
	sortByDate bool
	// patientIncluded includes the patient that a search names by patient= (contract 4.1).
	patientIncluded bool
	// idFromPath accepts a PUT body without an id; the path has it (contract 2.2).
	idFromPath bool
	// updateCreateRefused is the error of a PUT to an id without a record, on a site that chooses
	// ids itself. R4 answers 405 (http.html#update), the contract 404 as for any unknown id.
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

// historyMethod returns the method of a version in a history.
func (d *dialect) historyMethod(method store.Method) store.Method {
	if replaced, ok := d.historyMethods[method]; ok {
		return replaced
	}
	return method
}
