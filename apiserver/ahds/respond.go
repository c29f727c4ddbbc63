package ahds

import (
	"net/http"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// respond writes a response with a body.
func (r *request) respond(w http.ResponseWriter, status int, contentType string, body []byte) error {
	web.Respond(w, r.Request, status, contentType, body)
	return nil
}

// respondEmpty writes a response without a body.
func (r *request) respondEmpty(w http.ResponseWriter, status int) error {
	web.RespondEmpty(w, status)
	return nil
}

// setVersion sets the ETag and Last-Modified of a version of a record.
func setVersion(w http.ResponseWriter, rec store.Record) {
	web.SetVersion(w.Header(), etag(rec), rec.Updated)
}

// fail responds with an error. It logs an error whose status is 500 or above, except 501.
func (h *handler) fail(w http.ResponseWriter, r *request, err error) {
	p := problemOf(err)
	h.logFailure(r, p, err)
	for name, value := range p.header {
		w.Header().Set(name, value)
	}
	if err := r.respond(w, p.status, typeProblem, p.encode(h.ErrorPages, r.instance())); err != nil {
		h.Log.ErrorContext(r.Context(), "cannot write an error response", "request", web.RequestID(r.Context()), "site", r.site.ID, "err", err)
	}
}

// logFailure logs a problem of status 500 and above except 501.
func (h *handler) logFailure(r *request, p problem, err error) {
	if p.status >= http.StatusInternalServerError && p.status != http.StatusNotImplemented {
		h.Log.ErrorContext(r.Context(), "request failed", "request", web.RequestID(r.Context()),
			"site", r.site.ID, "id", r.id, "method", r.Method, "status", p.status, "err", err)
	}
}

// instance returns the URI reference that identifies the request in a problem.
func (r *request) instance() string { return r.URL.EscapedPath() + "#" + web.RequestID(r.Context()) }
