package fhir

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

const (
	// AuditResource is the RBAC resource of the audit log. A search of the audit log needs the right
	// to list this resource.
	AuditResource = "auditevents"
	auditEvent    = "AuditEvent"

	ndjson            = "application/fhir+ndjson"
	ndjsonContentType = ndjson + "; charset=utf-8"
	// ndjsonPage is the number of entries that a stream reads from the audit log at a time.
	ndjsonPage = 500
)

// AuditLog is the audit log of a site.
type AuditLog interface {
	// Search returns at most query.Count entries, newest first. Errors: audit.ErrTooSlow,
	// store.ErrUnavailable.
	Search(ctx context.Context, query audit.Query) ([]audit.Entry, error)
}

type ndjsonKey struct{}

// acceptNDJSON lets next answer with NDJSON if the client accepts it. Other paths have no NDJSON.
func acceptNDJSON(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, each := range acceptedRanges(r.Header) {
			if each.Type == ndjson && each.Quality > 0 {
				r = r.Clone(context.WithValue(r.Context(), ndjsonKey{}, true))
				r.Header.Set("Accept", fhirDialect.mediaType) // errors are JSON, not NDJSON
				break
			}
		}
		next(w, r)
	}
}

// auditEvents serves GET …/AuditEvent: the audit log of the site, newest first. R4 auditevent.html.
func (h *handler) auditEvents(w http.ResponseWriter, r *request) error {
	recorder := audit.From(r.Context())
	recorder.Interaction(interactionSearchType, audit.Execute, store.Key{Type: auditEvent})
	err := r.authorizer.Authorize(r.Context(), r.caller, r.site.Access, access.Action{Verb: "list", Group: Group, Resource: AuditResource})
	if err != nil {
		return err
	}
	if r.site.AuditLog == nil {
		return store.ErrUnavailable
	}
	query, err := r.parseAuditQuery(h.Now())
	if err != nil {
		return err
	}
	r.recordParameters(nil)
	binding := search.Binding{Site: r.site.ID, Scope: auditEvent, Query: r.canonicalAuditQuery().Encode(), Caller: r.caller.Name}
	if query.token != "" {
		at, err := h.tokens.Open(binding, query.token, h.Now())
		ok := err == nil
		if ok {
			query.After, ok = auditPosition(at.After)
		}
		if !ok {
			if err == nil {
				err = search.ErrTokenForeign
			}
			return search.Errors{{Parameter: "_page_token", Problem: err.Error()}}
		}
	}
	if wanted, _ := r.Context().Value(ndjsonKey{}).(bool); wanted && !r.inBundle {
		return r.streamAudit(w, query)
	}
	page, more, err := r.auditPage(query)
	if err != nil {
		return err
	}
	base := r.pagesURL() + "/" + auditEvent
	self := r.query
	links := []link{{"self", address(base, self.Encode())}, {"first", address(base, r.canonicalAuditQuery().Encode())}}
	if more {
		next := r.canonicalAuditQuery()
		next.Set("_page_token", h.tokens.Seal(binding, search.Cursor{After: appendAuditPosition(nil, page[len(page)-1].Position())}, h.Now()))
		links = append(links, link{"next", address(base, next.Encode())})
	}
	setLinks(w.Header(), links)
	b := newBundleWriter("searchset", store.UnknownTotal, links)
	for i := range page {
		b.startEntry().text(`{"fullUrl":"urn:paddock:audit:`).text(strconv.FormatInt(page[i].ID, 10)).text(`","resource":`)
		b.json = appendAuditEvent(b.json, &page[i])
		b.text(`,"search":{"mode":"match"}}`)
	}
	return r.respondBundle(w, b)
}

// auditPage returns a page of entries and whether there are more.
func (r *request) auditPage(query auditSearch) (page []audit.Entry, more bool, err error) {
	if query.matchesNone {
		return nil, false, nil
	}
	wanted := query.Query
	wanted.Count++
	page, err = r.site.AuditLog.Search(r.Context(), wanted)
	if errors.Is(err, audit.ErrTooSlow) {
		return nil, false, store.ErrQueryTimeout
	}
	if err == nil && len(page) > query.Count {
		return page[:query.Count], true, nil
	}
	return page, false, err
}

// streamAudit writes entries as lines of JSON: all that match, or at most _count if the client sent
// it. If the first entries cannot be read, it returns the error. If later ones cannot be read, it
// aborts the response by a panic, so that the client notices.
func (r *request) streamAudit(w http.ResponseWriter, query auditSearch) error {
	left := query.Count
	if !query.hasCount {
		query.Count = ndjsonPage
	}
	page, more, err := r.auditPage(query)
	if err != nil {
		return err
	}
	web.SetContent(w.Header(), ndjsonContentType)
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	var lines []byte
	for {
		lines = lines[:0]
		for i := range page {
			lines = append(appendAuditEvent(lines, &page[i]), '\n')
		}
		if _, err := w.Write(lines); err != nil {
			return nil //nolint:nilerr // the client has gone away
		}
		left -= len(page)
		if !more || query.hasCount && left <= 0 {
			return nil
		}
		query.After = page[len(page)-1].Position()
		if page, more, err = r.auditPage(query); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// appendAuditEvent appends an entry as an AuditEvent. R4 auditevent.html.
func appendAuditEvent(dst []byte, e *audit.Entry) []byte {
	b := &bundleWriter{json: dst}
	b.text(`{"resourceType":"AuditEvent","id":"`).text(strconv.FormatInt(e.ID, 10)).
		text(`","type":{"system":"` + auditTypeSystem + `","code":"` + auditTypeRest + `","display":"RESTful Operation"}`)
	if e.Interaction != "" {
		system := auditSubtypeSystem
		if e.Interaction == interactionPurge { // R4 has no code for a purge
			system = "tag:paddock.health,2026:fhir"
		} else if e.API != "fhir" {
			system = "tag:paddock.health,2026:" + e.API
		}
		b.text(`,"subtype":[{"system":`).quote(system).text(`,"code":`).quote(e.Interaction).text(`}]`)
	}
	if e.Action != "" {
		b.text(`,"action":`).quote(string(e.Action))
	}
	b.text(`,"recorded":"`)
	b.json = e.Time.UTC().AppendFormat(b.json, "2006-01-02T15:04:05.000000Z07:00")
	b.text(`","outcome":"` + strconv.Itoa(int(e.Outcome())) + `","outcomeDesc":"HTTP ` + strconv.Itoa(e.Status) + `"`)
	if e.BreakGlass {
		b.text(`,"purposeOfEvent":[{"coding":[{"system":"http://terminology.hl7.org/CodeSystem/v3-ActReason","code":"BTG","display":"break the glass"}]}]`)
	}
	b.text(`,"agent":[{`)
	if e.Caller != "" {
		b.text(`"who":{"identifier":{`)
		if e.Issuer != "" {
			b.text(`"system":`).quote("tag:paddock.health,2026:issuer/" + e.Issuer).text(`,`)
		}
		b.text(`"value":`).quote(e.Caller).text(`},"display":`).quote(e.Caller).text(`},`)
	}
	b.text(`"requestor":true`)
	if e.Address != "" {
		b.text(`,"network":{"address":`).quote(e.Address).text(`,"type":"2"}`)
	}
	b.text(`}],"source":{`)
	if e.Site != "" {
		b.text(`"site":`).quote(e.Site).text(`,`)
	}
	b.text(`"observer":{"display":"Paddock"},"type":[{"system":"http://terminology.hl7.org/CodeSystem/security-source-type","code":"4","display":"Application Server"}]}`)
	return b.auditEntities(e).text("}").json
}

// auditEntities writes the records of an audit entry and the details of its request.
func (b *bundleWriter) auditEntities(e *audit.Entry) *bundleWriter {
	b.text(`,"entity":[`)
	for record := range e.Records.All() {
		typeName, _, _ := strings.Cut(record, "/")
		element := "display" // records of other APIs are not FHIR resources
		if _, ok := r4.TypeOf(typeName); ok {
			element = "reference"
		}
		b.text(`{"what":{"` + element + `":`).quote(record).text(`}},`)
	}
	b.text(`{"type":{"system":"http://terminology.hl7.org/CodeSystem/audit-entity-type","code":"4","display":"Other"},"detail":[{"type":"method","valueString":`).quote(e.Method).text("}")
	for _, detail := range []struct{ name, value string }{
		{"api", e.API},
		{"type", e.Type},
		{"request-id", e.Request},
		{"correlation-id", e.Correlation},
		{"subject", string(e.Subject)},
		{"issuer", e.Issuer},
		{"rule", e.Rule},
		{"parameters", strings.Join(e.Parameters, " ")},
	} {
		if detail.value != "" {
			b.text(`,{"type":"` + detail.name + `","valueString":`).quote(detail.value).text("}")
		}
	}
	if e.Requests > 0 {
		b.text(`,{"type":"requests","valueString":"` + strconv.Itoa(e.Requests) + `"}`)
	}
	return b.text("]}]")
}
