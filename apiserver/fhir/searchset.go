package fhir

import (
	"strconv"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/store"
)

// searchset returns the Bundle of a page: its matches, the included records, and the issues of the
// search. R4 search.html#return.
func (r *request) searchset(query search.Query, page store.Page, links []link) (*bundleWriter, error) {
	var whole []store.Record
	if query.Summary == search.NoSummary && len(query.Elements) == 0 {
		whole = page.Records
	}
	b := newBundleWriter("searchset", page.Total, links, whole...)
	for _, rec := range page.Records {
		if err := b.addMatch(r, "match", rec, projectionOf(query, rec.Key.Type), query.Near); err != nil {
			return nil, err
		}
	}
	for _, rec := range page.Included {
		if err := b.addMatch(r, "include", rec, projection{summary: query.Summary}, nil); err != nil {
			return nil, err
		}
	}
	issues := ignoredIssues(query.Ignored)
	if query.CountReduced {
		issues = append(issues, information("count_reduced",
			"_count is above the maximum, so this page has at most "+strconv.Itoa(query.Count)+" matches; follow the next link for further matches"))
	}
	if page.IncludedCut {
		issues = append(issues, r4.Issue{
			Severity: r4.SeverityWarning, Type: issueTooCostly, Code: codeTooCostly,
			Diagnostics: "some included records are missing, because a page includes at most " + strconv.Itoa(r.maxIncluded()) + " records, and fewer if they are large; reduce _count",
		})
	}
	if len(issues) > 0 {
		if err := b.addOutcome(r.errorPages, issues); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// addMatch adds a record to a searchset. mode is match or include.
func (b *bundleWriter) addMatch(r *request, mode string, rec store.Record, projected projection, near []store.Near) error {
	b.startEntry().text(`{"fullUrl":`).fullURL(r, rec.Key).text(`,"resource":`)
	if err := b.resource(rec, projected); err != nil {
		return err
	}
	b.text(`,"search":{`)
	if meters, ok := distance(rec, near); ok {
		b.text(`"extension":[{"url":"http://hl7.org/fhir/StructureDefinition/location-distance","valueDistance":{"value":`)
		b.json = strconv.AppendFloat(b.json, meters/1000, 'f', 3, 64)
		b.text(`,"unit":"km","system":"http://unitsofmeasure.org","code":"km"}}],`)
	}
	b.text(`"mode":"` + mode + `"}}`)
	return nil
}

// distance returns the distance of a record from the nearest of the places. ok is false if there is
// no place, or if the record has no position. R4 location.html#positional.
func distance(rec store.Record, near []store.Near) (meters float64, ok bool) {
	if len(near) == 0 {
		return 0, false
	}
	for _, entry := range extract.Values(rec.Key.Type, rec.Body.JSON) {
		point, isPoint := entry.Value.(store.Point)
		if !isPoint {
			continue
		}
		for _, place := range near {
			if away := place.Center.Distance(point); !ok || away < meters {
				meters, ok = away, true
			}
		}
	}
	return meters, ok
}

// ignoredIssues returns the warnings about parameters that lenient handling ignored.
func ignoredIssues(names []string) []r4.Issue {
	issues := make([]r4.Issue, len(names))
	for i, name := range names {
		issues[i] = r4.Issue{
			Severity: r4.SeverityWarning, Type: issueNotSupported, Code: codeInvalidQuery,
			Diagnostics: "the unknown search parameter " + r4.Quote(name) + " is ignored; correct its name or omit it",
		}
	}
	return issues
}
