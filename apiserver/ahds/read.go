package ahds

import (
	"net/http"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/store"
)

// read serves GET …/{kind}/{id}.
func (h *handler) read(w http.ResponseWriter, r *request, k *kind) error {
	if err := list.ReadNone(r.query); err != nil {
		return err
	}
	rec, err := r.site.Store.Get(r.Context(), k.key(r.id))
	if err != nil {
		return err
	}
	unchanged, err := isNotModified(r.Header, etag(rec), rec.Updated)
	if err != nil {
		return err
	}
	if unchanged {
		setVersion(w, rec)
		return r.respondEmpty(w, http.StatusNotModified)
	}
	return h.respondRecord(w, r, http.StatusOK, k, rec)
}

// respondRecord answers with a version of a record.
func (h *handler) respondRecord(w http.ResponseWriter, r *request, status int, k *kind, rec store.Record, more ...func(*document.Writer)) error {
	body, err := h.render(r, k, rec, more...)
	if err != nil {
		return err
	}
	setVersion(w, rec)
	return r.respond(w, status, typeJSON, body)
}
