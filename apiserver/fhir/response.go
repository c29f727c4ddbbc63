package fhir

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// respond writes a response with a JSON body in the dialect of the request.
func (r *request) respond(w http.ResponseWriter, status int, body []byte) error {
	if r.pretty {
		var err error
		body, err = jsontext.AppendFormat(nil, body, jsontext.WithIndent("  "), jsontext.PreserveRawStrings(true))
		if err != nil {
			return err
		}
	}
	web.Respond(w, r.Request, status, r.dialect.contentType, body)
	return nil
}

func (r *request) respondEmpty(w http.ResponseWriter, status int) error {
	web.RespondEmpty(w, status)
	return nil
}

// setVersion sets ETag and Last-Modified to those of a version, and r.lastModified.
func (r *request) setVersion(w http.ResponseWriter, rec store.Record) {
	r.lastModified = rec.Updated
	web.SetVersion(w.Header(), etag(rec.Version), rec.Updated)
}

func (r *request) respondOutcome(w http.ResponseWriter, status int, issues ...r4.Issue) error {
	r.isOutcome = true
	body, err := appendOutcome(nil, r.errorPages, issues)
	if err != nil {
		return err
	}
	return r.respond(w, status, body)
}

// fail answers with an error. It logs errors with a status from 500 up, except 501.
func (h *handler) fail(w http.ResponseWriter, r *request, err error) {
	p := problemOf(r.describe(err))
	if p.status >= http.StatusInternalServerError && p.status != http.StatusNotImplemented {
		h.Log.ErrorContext(r.Context(), "request failed", "request", web.RequestID(r.Context()),
			"site", r.site.ID, "resource", r.kind.Resource, "id", r.id, "method", r.Method, "status", p.status, "err", err)
	}
	for name, value := range p.header {
		w.Header().Set(name, value)
	}
	if err := r.respondOutcome(w, p.status, p.issues...); err != nil {
		h.Log.ErrorContext(r.Context(), "error response not written", "request", web.RequestID(r.Context()),
			"site", r.site.ID, "resource", r.kind.Resource, "id", r.id, "method", r.Method, "status", p.status, "err", err)
	}
}
