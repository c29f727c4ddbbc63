package fhir

import (
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

// projection is the part of a resource that a response has. The zero value is the whole resource.
// R4 search.html#summary.
type projection struct {
	elements []string
	summary  search.Summary
}

// projectionOf returns the projection of a type that a query asks for.
func projectionOf(query search.Query, typeName string) projection {
	return projection{elements: query.ElementsOf(typeName), summary: query.Summary}
}

// render appends the resource of a stored record to dst, reduced to a projection.
func render(dst []byte, rec store.Record, projected projection) ([]byte, error) {
	resource := func(dst []byte) []byte {
		return r4.AppendJSON(dst, rec.Body.JSON, rec.Body.IDOffset, rec.Body.MetaOffset, rec.Key.ID, rec.Version, rec.Updated)
	}
	typeName := rec.Key.Type
	switch {
	case projected.summary == search.SummaryTrue:
		return r4.AppendSummary(dst, resource(nil), typeName)
	case projected.summary == search.SummaryData:
		return r4.AppendData(dst, resource(nil), typeName)
	case projected.summary == search.SummaryText:
		return r4.AppendSubset(dst, resource(nil), typeName, []string{"text"})
	case len(projected.elements) > 0:
		return r4.AppendSubset(dst, resource(nil), typeName, projected.elements)
	default:
		return resource(dst), nil
	}
}
