package ahds

import (
	"net/http"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// read serves GET …/{kind}/{id}.
func (h *handler) read(w http.ResponseWriter, r *request, k *kind) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	rec, err := r.site.Store.Get(r.Context(), k.key(r.id))
	if err != nil {
		return err
	}
	unchanged, err := web.IsNotModified(r.Header, etagSyntax, etag(rec), rec.Updated)
	if err != nil {
		return err
	}
	if unchanged {
		setVersion(w, rec)
		return r.respondEmpty(w, http.StatusNotModified)
	}
	return h.respondRecord(w, r, http.StatusOK, k, rec)
}

// respondRecord writes a version of a record as the response.
func (h *handler) respondRecord(w http.ResponseWriter, r *request, status int, k *kind, rec store.Record, more ...func(*schema.Writer)) error {
	body, err := h.render(r, k, rec, more...)
	if err != nil {
		return err
	}
	setVersion(w, rec)
	return r.respond(w, status, typeJSON, body)
}
