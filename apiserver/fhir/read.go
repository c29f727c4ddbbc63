package fhir

import (
	"net/http"

	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// read serves GET …/{id}. R4 http.html#read.
func (h *handler) read(w http.ResponseWriter, r *request) error {
	if err := h.parseProjection(r); err != nil {
		return err
	}
	rec, err := r.site.Store.Get(r.Context(), r.key())
	if err != nil {
		return err
	}
	return r.respondVersion(w, rec)
}

// readVersion serves GET …/{id}/_history/{vid}. R4 http.html#vread.
func (h *handler) readVersion(w http.ResponseWriter, r *request) error {
	if err := h.parseProjection(r); err != nil {
		return err
	}
	version := versionOf(r.version)
	if version == noVersion {
		return store.ErrNotFound
	}
	rec, err := r.site.Store.GetVersion(r.Context(), r.key(), version)
	if err != nil {
		return err
	}
	if rec.Deleted {
		return &store.DeletedError{Key: rec.Key, Version: rec.Version, Updated: rec.Updated}
	}
	return r.respondVersion(w, rec)
}

// parseProjection sets the projection of a read, or of a write to one record without criteria.
// Other parameters are rejected: if one that was meant as a criterion were ignored, the record
// would be written whether or not it meets the criterion. Errors: search.Errors.
func (h *handler) parseProjection(r *request) error {
	if len(r.query) == 0 {
		return nil
	}
	query, err := search.ParseRead(r.query, h.searchOptions(r))
	r.projection = projectionOf(query, r.kind.Name)
	return err
}

// respondVersion responds with a version, or with 304 if the header says that the client has it.
func (r *request) respondVersion(w http.ResponseWriter, rec store.Record) error {
	notModified, err := web.IsNotModified(r.Header, readETagSyntax, etag(rec.Version), rec.Updated)
	if err != nil {
		return err
	}
	body, err := render(nil, rec, r.projection)
	if err != nil {
		return err
	}
	r.setVersion(w, rec)
	if notModified {
		return r.respondEmpty(w, http.StatusNotModified)
	}
	return r.respond(w, http.StatusOK, body)
}
