package fhir

import (
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

// part is which part of a resource to answer with; the zero value is all of it.
type part struct {
	elements []string
	summary  search.Summary
}

// partOf is the part of resources of a type that a query asks for.
func partOf(query search.Query, typeName string) part {
	return part{elements: query.ElementsOf(typeName), summary: query.Summary}
}

// elementsOf names the elements of a type to answer with, none for all.
func (p part) elementsOf(typeName string) []string {
	switch p.summary {
	case search.SummaryTrue:
		return r4.SummaryElements(typeName)
	case search.SummaryText:
		return []string{"text"}
	case search.SummaryData:
		return r4.DataElements(typeName)
	default:
		return p.elements
	}
}

// render writes a stored record as its resource, or a part of it.
func render(dst []byte, rec store.Record, shown part) ([]byte, error) {
	resource := func(dst []byte) []byte {
		return r4.AppendJSON(dst, rec.Body.JSON, rec.Body.IDOffset, rec.Body.MetaOffset, rec.Key.ID, rec.Version, rec.Updated)
	}
	elements := shown.elementsOf(rec.Key.Type)
	if len(elements) == 0 {
		return resource(dst), nil
	}
	return r4.AppendSubset(dst, resource(nil), rec.Key.Type, elements)
}
