package fhir

import (
	"net/http"
	"path"

	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

// history serves GET …/{id}/history and …/{id}/_history. Contract 2.4;
// R4 http.html#history.
func (h *handler) history(w http.ResponseWriter, r *request) error {
	query, err := search.ParseHistory(r.query, h.searchOptions(r))
	if err != nil {
		return err
	}
	binding := search.Binding{
		Site: r.site.ID, Scope: r.kind.Name + "/" + r.id + "/_history",
		Query: query.Canonical(), Caller: r.caller.Name,
	}
	after, err := h.position(query, binding)
	if err != nil {
		return err
	}
	page, err := r.site.Store.History(r.Context(), store.HistoryQuery{
		Key:       r.key(),
		Deletions: r.dialect.historyDeletions,
		Count:     query.Count,
		After:     after,
	})
	if err != nil {
		return err
	}
	// Links repeat the spelling of history that was asked for.
	base := r.recordURL(r.id) + "/" + path.Base(r.URL.Path)
	b := newBundle("history", page.Total, h.pageLinks(base, query, binding, page.Next))
	for _, rec := range page.Records {
		if err := b.version(r, rec); err != nil {
			return err
		}
	}
	return r.respond(w, http.StatusOK, b.done())
}
