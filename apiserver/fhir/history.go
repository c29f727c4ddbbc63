package fhir

import (
	"net/http"
	"path"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

// history serves GET …/{id}/history and …/{id}/_history. Contract 2.4; R4 http.html#history.
func (h *handler) history(w http.ResponseWriter, r *request) error {
	// Links repeat the spelling of history in the request.
	return h.historyOf(w, r, r.pagesURL()+"/"+r.recordPath(r.key())+"/"+path.Base(r.URL.Path))
}

// typeHistory serves GET …/{type}/_history.
func (h *handler) typeHistory(w http.ResponseWriter, r *request) error {
	return h.historyOf(w, r, r.typeURL()+"/_history")
}

// siteHistory serves GET …/_history. It shows records of all types, so the caller must have the
// right to list each of them.
func (h *handler) siteHistory(w http.ResponseWriter, r *request) error {
	for _, kind := range r4.Types {
		if err := r.authorizeList(kind); err != nil {
			return err
		}
	}
	return h.historyOf(w, r, r.pagesURL()+"/_history")
}

// typeNames returns the types of this facade. A site also has records of other facades.
func typeNames() []string {
	names := make([]string, len(r4.Types))
	for i, kind := range r4.Types {
		names[i] = kind.Name
	}
	return names
}

// historyOf responds with a page of the history of a record, a type or the site.
func (h *handler) historyOf(w http.ResponseWriter, r *request, base string) error {
	of := r.key()
	query, err := search.ParseHistory(r.query, h.searchOptions(r))
	if err != nil {
		return err
	}
	r.recordParameters(query.Ignored)
	types := typeNames()
	if of.Type != "" {
		types = []string{of.Type}
	}
	binding := r.binding(query, of.Type+"/"+of.ID+"/_history", types)
	at, err := h.cursor(query, binding)
	if err != nil {
		return err
	}
	historyQuery := store.HistoryQuery{
		Key:       of,
		Types:     types,
		Deletions: r.dialect.historyDeletions,
		Since:     query.Since,
		Current:   query.At,
		Count:     query.Count,
		After:     at.After,
	}
	page, err := r.site.Store.History(r.Context(), historyQuery)
	if err != nil {
		return err
	}
	links, err := h.pageLinks(base, query, binding, at, page.Next)
	if err != nil {
		return err
	}
	setLinks(w.Header(), links)
	b := newBundleWriter("history", page.Total, links)
	for _, rec := range page.Records {
		if err := b.addVersion(r, rec, projectionOf(query, rec.Key.Type)); err != nil {
			return err
		}
	}
	if len(page.Records) == 0 && r.dialect.historyEntries && !r.inBundle { // responses in a batch have no empty lists, as in FHIR
		b.emptyEntries()
	}
	return r.respondBundle(w, b)
}
