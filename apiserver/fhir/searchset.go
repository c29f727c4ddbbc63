package fhir

import (
	"strconv"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

// searchset is the bundle of a page of matches: these, what is included, and what is to
// be said about the search itself. R4 search.html#return.
func (r *request) searchset(query search.Query, page store.Page, links []link) (*bundle, error) {
	var whole []store.Record
	if query.Summary == search.NoSummary && len(query.Elements) == 0 {
		whole = page.Records
	}
	b := newBundle("searchset", page.Total, links, whole...)
	for _, rec := range page.Records {
		if err := b.found(r, "match", rec, partOf(query, rec.Key.Type), query.Near); err != nil {
			return nil, err
		}
	}
	for _, rec := range page.Included {
		if err := b.found(r, "include", rec, part{summary: query.Summary}, nil); err != nil {
			return nil, err
		}
	}
	issues := ignoredIssues(query.Ignored)
	if query.CountReduced {
		issues = append(issues, information("count_reduced",
			"_count is above the maximum, so that this page has at most "+strconv.Itoa(search.MaxCount)+" matches; follow the next link for the others"))
	}
	if page.IncludedCut {
		issues = append(issues, r4.Issue{
			Severity: r4.SeverityWarning, Type: issueTooCostly, Code: codeTooCostly,
			Diagnostics: "more records are to be included than the " + strconv.Itoa(r.maxIncluded()) + " that a page of this site may have, or are too large for one page; ask for fewer matches at once",
		})
	}
	if len(issues) > 0 {
		if err := b.outcome(issues); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// found adds a record to a searchset.
func (b *bundle) found(r *request, mode string, rec store.Record, shown part, near []store.Near) error {
	b.entry().text(`{"fullUrl":`).fullURL(r, rec.Key).text(`,"resource":`)
	if err := b.resource(rec, shown); err != nil {
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

// distance is how far a record is from the nearest of the places that were asked for.
// R4 location.html#positional.
func distance(rec store.Record, near []store.Near) (meters float64, ok bool) {
	if len(near) == 0 {
		return 0, false
	}
	for _, entry := range Extract(rec.Key.Type, rec.Body.JSON) {
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

// ignoredIssues say which parameters lenient handling passed over.
func ignoredIssues(names []string) []r4.Issue {
	issues := make([]r4.Issue, len(names))
	for i, name := range names {
		issues[i] = r4.Issue{
			Severity: r4.SeverityWarning, Type: issueNotSupported, Code: codeInvalidQuery,
			Diagnostics: "the unknown search parameter " + r4.Quote(name) + " is ignored",
		}
	}
	return issues
}
