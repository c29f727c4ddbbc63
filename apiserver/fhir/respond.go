package fhir

import (
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// respond writes an answer with a body of JSON in the request's dialect.
func (r *request) respond(w http.ResponseWriter, status int, body []byte) error {
	if r.pretty {
		var err error
		body, err = jsontext.AppendFormat(nil, body, jsontext.WithIndent("  "), jsontext.PreserveRawStrings(true))
		if err != nil {
			return err
		}
	}
	header := w.Header()
	header.Set("Content-Type", r.dialect.contentType)
	header.Set("X-Content-Type-Options", "nosniff")
	r.setCaching(header)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // there is nobody to tell when the client is gone
	}
	return nil
}

// respondEmpty writes an answer without a body.
func (r *request) respondEmpty(w http.ResponseWriter, status int) error {
	r.setCaching(w.Header())
	w.WriteHeader(status)
	return nil
}

// setCaching keeps answers out of caches that are shared, and fresh in others.
func (r *request) setCaching(header http.Header) {
	header.Set("Cache-Control", "private, no-cache")
	header.Add("Vary", "Accept")
	header.Add("Vary", "Authorization")
}

// setVersion says which version an answer is about.
func (r *request) setVersion(w http.ResponseWriter, rec store.Record) {
	r.updated = rec.Updated
	w.Header().Set("ETag", etag(rec.Version))
	w.Header().Set("Last-Modified", rec.Updated.UTC().Format(http.TimeFormat))
}

// respondOutcome writes an OperationOutcome.
func (r *request) respondOutcome(w http.ResponseWriter, status int, issues ...r4.Issue) error {
	r.saysOutcome = true
	body, err := appendOutcome(nil, issues)
	if err != nil {
		return err
	}
	return r.respond(w, status, body)
}

// fail answers with an error.
func (h *handler) fail(w http.ResponseWriter, r *request, err error) {
	p := problemOf(err)
	if p.status >= http.StatusInternalServerError && p.status != http.StatusNotImplemented {
		h.Log.ErrorContext(r.Context(), "request failed", "request", web.RequestID(r.Context()),
			"site", r.site.ID, "resource", r.kind.Resource, "id", r.id, "method", r.Method, "status", p.status, "err", err)
	}
	for name, value := range p.header {
		w.Header().Set(name, value)
	}
	if err := r.respondOutcome(w, p.status, p.issues...); err != nil {
		h.Log.ErrorContext(r.Context(), "answer failed", "request", web.RequestID(r.Context()), "err", err)
	}
}
