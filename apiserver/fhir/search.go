package fhir

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

// searchByPost serves POST …/{type}/_search: the form goes with the URL's
// parameters. R4 http.html#search.
func (h *handler) searchByPost(w http.ResponseWriter, r *request) error {
	form, err := r.readForm(w)
	if err != nil {
		return err
	}
	merged := maps.Clone(r.query)
	for name, values := range form {
		merged[name] = slices.Concat(merged[name], values)
	}
	if err := r.setQuery(merged); err != nil {
		return err
	}
	return h.search(w, r)
}

// storeQuery says a query on a type in the words of the storage contract.
func storeQuery(typeName string, query search.Query, after store.Position) store.Query {
	var where store.All
	if query.IDs != nil {
		where = append(where, store.IDIn(query.IDs))
	}
	for _, alternatives := range query.Updated {
		var ranges store.Any
		for _, r := range alternatives {
			ranges = append(ranges, store.UpdatedIn(r))
		}
		where = append(where, ranges)
	}
	for _, condition := range query.Tokens {
		var tokens store.Any
		for _, match := range condition.AnyOf {
			tokens = append(tokens, store.TokenIs{Param: condition.Param, System: match.System, Code: match.Code})
		}
		where = append(where, tokens)
	}
	return store.Query{
		Types: []string{typeName},
		Where: where,
		Sort:  []store.Sort{{Field: storeSorts[query.Sort.Field], Descending: query.Sort.Descending}},
		Count: query.Count,
		After: after,
		Total: storeTotals[query.Total],
	}
}

// search serves GET …/{type}. R4 http.html#search; contract 2.3.
func (h *handler) search(w http.ResponseWriter, r *request) error {
	options := h.searchOptions(r)
	options.Lenient = parsePreferences(r.Header).lenient
	query, err := search.Parse(r.query, options)
	if err != nil {
		return err
	}
	binding := search.Binding{Site: r.site.ID, Scope: r.kind.Name, Query: query.Canonical(), Caller: r.caller.Name}
	after, err := h.position(query, binding)
	if err != nil {
		return err
	}
	page, err := r.site.Store.Search(r.Context(), storeQuery(r.kind.Name, query, after))
	if err != nil {
		return err
	}
	links := h.pageLinks(r.typeURL(), query, binding, page.Next)
	b := newBundle("searchset", page.Total, append([]link{{"search", address(r.typeURL(), query.Encode(""))}}, links...))
	for _, rec := range page.Records {
		if err := b.match(r.recordURL(rec.Key), rec, query.Elements); err != nil {
			return err
		}
	}
	if len(query.Ignored) > 0 {
		if err := b.outcome(ignoredIssues(query.Ignored)); err != nil {
			return err
		}
	}
	return r.respond(w, http.StatusOK, b.done())
}

// ignoredIssues say which parameters lenient handling passed over.
func ignoredIssues(names []string) []r4.Issue {
	issues := make([]r4.Issue, len(names))
	for i, name := range names {
		issues[i] = r4.Issue{
			Severity: r4.SeverityWarning, Type: issueNotSupported, Code: codeInvalidQuery,
			Diagnostics: "the unknown search parameter " + r4.Quote(name) + " is ignored",
		}
	}
	return issues
}

// position opens the page token of a query, if it has one.
func (h *handler) position(query search.Query, binding search.Binding) (store.Position, error) {
	if query.PageToken == "" {
		return nil, nil
	}
	position, err := h.tokens.Open(binding, query.PageToken, h.Now())
	if errors.Is(err, search.ErrTokenForeign) || errors.Is(err, search.ErrTokenExpired) {
		return nil, search.Errors{{Parameter: "_page_token", Problem: err.Error()}}
	}
	return position, err
}

// pageLinks are the links that pages of any kind have.
func (h *handler) pageLinks(base string, query search.Query, binding search.Binding, next store.Position) []link {
	links := []link{
		{"self", address(base, query.Encode(query.PageToken))},
		{"first", address(base, query.Encode(""))},
	}
	if next != nil {
		token := h.tokens.Seal(binding, next, h.Now())
		links = append(links, link{"next", address(base, query.Encode(token))})
	}
	return links
}

// address joins an address and a query string.
func address(base, query string) string {
	if query == "" {
		return base
	}
	return base + "?" + query
}

var storeSorts = map[search.SortField]store.SortField{
	search.SortCreated: store.SortCreated,
	search.SortUpdated: store.SortUpdated,
	search.SortID:      store.SortID,
}

var storeTotals = map[search.Total]store.TotalMode{
	search.TotalWhenFree: store.TotalWhenFree,
	search.TotalAccurate: store.TotalAccurate,
	search.TotalNone:     store.TotalNone,
}
