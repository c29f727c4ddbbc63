package ahds

import (
	"net/http"
	"strconv"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// respond writes an answer with a body.
func (r *request) respond(w http.ResponseWriter, status int, contentType string, body []byte) error {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("X-Content-Type-Options", "nosniff")
	setCaching(header)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // there is nobody to tell when the client is gone
	}
	return nil
}

// respondEmpty writes an answer without a body.
func (r *request) respondEmpty(w http.ResponseWriter, status int) error {
	setCaching(w.Header())
	w.WriteHeader(status)
	return nil
}

// setCaching keeps answers out of caches that are shared, and fresh in others.
func setCaching(header http.Header) {
	header.Set("Cache-Control", "private, no-cache")
	header.Add("Vary", "Accept")
	header.Add("Vary", "Authorization")
}

// setVersion says which version an answer is about.
func setVersion(w http.ResponseWriter, rec store.Record) {
	w.Header().Set("ETag", etag(rec))
	w.Header().Set("Last-Modified", rec.Updated.UTC().Format(http.TimeFormat))
}

// fail answers with an error.
func (h *handler) fail(w http.ResponseWriter, r *request, err error) {
	p := problemOf(err)
	if p.status >= http.StatusInternalServerError && p.status != http.StatusNotImplemented {
		h.Log.ErrorContext(r.Context(), "request failed", "request", web.RequestID(r.Context()),
			"site", r.site.ID, "id", r.id, "method", r.Method, "status", p.status, "err", err)
	}
	for name, value := range p.header {
		w.Header().Set(name, value)
	}
	instance := r.URL.EscapedPath() + "#" + web.RequestID(r.Context())
	if err := r.respond(w, p.status, typeProblem, p.document(instance)); err != nil {
		h.Log.ErrorContext(r.Context(), "answer failed", "request", web.RequestID(r.Context()), "err", err)
	}
}
