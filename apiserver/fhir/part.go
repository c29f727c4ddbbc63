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

// render writes a stored record as its resource, or a part of it.
func render(dst []byte, rec store.Record, shown part) ([]byte, error) {
	resource := func(dst []byte) []byte {
		return r4.AppendJSON(dst, rec.Body.JSON, rec.Body.IDOffset, rec.Body.MetaOffset, rec.Key.ID, rec.Version, rec.Updated)
	}
	typeName := rec.Key.Type
	switch {
	case shown.summary == search.SummaryTrue:
		return r4.AppendSummary(dst, resource(nil), typeName)
	case shown.summary == search.SummaryData:
		return r4.AppendData(dst, resource(nil), typeName)
	case shown.summary == search.SummaryText:
		return r4.AppendSubset(dst, resource(nil), typeName, []string{"text"})
	case len(shown.elements) > 0:
		return r4.AppendSubset(dst, resource(nil), typeName, shown.elements)
	default:
		return resource(dst), nil
	}
}
