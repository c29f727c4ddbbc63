package fhir

import (
	"net/http"

	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

// read serves GET …/{id}. R4 http.html#read.
func (h *handler) read(w http.ResponseWriter, r *request) error {
	if err := h.takeShown(r); err != nil {
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
	if err := h.takeShown(r); err != nil {
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

// takeShown takes the parameters that a read has, and a write of one record that no
// criteria choose. Any other is refused: dropping what was meant as a condition would
// write the record in spite of it.
func (h *handler) takeShown(r *request) error {
	if len(r.query) == 0 {
		return nil
	}
	query, err := search.ParseRead(r.query, h.searchOptions(r))
	r.shown = partOf(query, r.kind.Name)
	return err
}

// respondVersion answers with a version, unless the client already has it.
func (r *request) respondVersion(w http.ResponseWriter, rec store.Record) error {
	notModified, err := isNotModified(r.Header, rec)
	if err != nil {
		return err
	}
	body, err := render(nil, rec, r.shown)
	if err != nil {
		return err
	}
	r.setVersion(w, rec)
	if notModified {
		return r.respondEmpty(w, http.StatusNotModified)
	}
	return r.respond(w, http.StatusOK, body)
}

// searchOptions say how to read the parameters of a request.
func (h *handler) searchOptions(r *request) search.Options {
	lenient := r.site.Lenient
	if handling := parsePreferences(r.Header).handling; handling != "" {
		lenient = handling == handlingLenient
	}
	options := search.Options{
		Type:       r.kind.Name,
		SortByDate: r.dialect.sortByDate,
		Lenient:    lenient,
		Now:        h.Now(),
		Zone:       r.site.Zone,
		Bases:      r.bases(),
	}
	if r.compartment != nil {
		options.Compartment = &r.compartment.Compartment
	}
	return options
}
