package ahds

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

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

// list serves GET …/{kind}.
func (h *handler) list(w http.ResponseWriter, r *request, k *kind) error {
	asked, err := list.Read(r.query, k.lists)
	if err != nil {
		return err
	}
	sort := k.sorts[asked.SortBy]
	sort.Descending = asked.Descending
	page, err := r.site.Store.Search(r.Context(), store.Query{
		Types: []string{k.recordType}, Where: store.All(asked.Where), Sort: []store.Sort{sort},
		Count: asked.PageSize, Skip: asked.Skip(), Total: store.TotalAccurate,
	})
	if err != nil {
		return err
	}
	items := make([]jsontext.Value, len(page.Records))
	for i, rec := range page.Records {
		if items[i], err = h.render(r, k, rec); err != nil {
			return err
		}
	}
	return r.respond(w, http.StatusOK, typeJSON, asked.Envelope(items, page.Total))
}
