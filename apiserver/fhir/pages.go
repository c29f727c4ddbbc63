package fhir

import (
	"errors"
	"net/http"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
)

// binding returns a function that makes the Binding of the query's page tokens. types are all types
// whose records affect the result. The Binding is made only if needed, because most requests have
// no page token. Errors of the function: those of finding the caller's rights.
func (r *request) binding(query search.Query, scope string, types []string) func() (search.Binding, error) {
	return func() (search.Binding, error) {
		view, err := r.site.Store.Digest(types)
		return search.Binding{Site: r.site.ID, Scope: scope, Query: query.Canonical(), Caller: r.caller.Name, View: view}, err
	}
}

// cursor returns the cursor in the page token, or that of the first page. Errors: search.Errors,
// those of binding.
func (h *handler) cursor(query search.Query, binding func() (search.Binding, error)) (search.Cursor, error) {
	if query.PageToken == "" {
		return search.Cursor{}, nil
	}
	bound, err := binding()
	if err != nil {
		return search.Cursor{}, err
	}
	at, err := h.tokens.Open(bound, query.PageToken, h.Now())
	if errors.Is(err, search.ErrTokenForeign) || errors.Is(err, search.ErrTokenExpired) {
		return search.Cursor{}, search.Errors{{Parameter: "_page_token", Problem: err.Error()}}
	}
	return at, err
}

// pageLinks returns the links of a page of a searchset or a history: self, first, previous and
// next. The last page has no next link. A page token has the position of its own page and of the
// page before. So a page has a previous link if it was reached by a next link, and none if it was
// reached by a previous link or if both positions are too long for a token (search.Tokens.Seal). R4
// http.html#paging. Errors: those of binding.
func (h *handler) pageLinks(base string, query search.Query, binding func() (search.Binding, error), at search.Cursor, next store.Position) ([]link, error) {
	first := address(base, query.Encode(""))
	links := []link{{"self", first}, {"first", first}}
	if query.PageToken != "" {
		links[0].url = address(base, query.Encode(query.PageToken))
	}
	addPage := func(relation string, to search.Cursor) error {
		bound, err := binding()
		if err == nil {
			links = append(links, link{relation, address(base, query.Encode(h.tokens.Seal(bound, to, h.Now())))})
		}
		return err
	}
	switch {
	case at.HasPrevious && len(at.Previous) == 0:
		links = append(links, link{"previous", first})
	case at.HasPrevious:
		if err := addPage("previous", search.Cursor{After: at.Previous}); err != nil {
			return nil, err
		}
	}
	if next != nil {
		if err := addPage("next", search.Cursor{After: next, Previous: at.After, HasPrevious: true}); err != nil {
			return nil, err
		}
	}
	return links, nil
}

// maxLinkHeader is the maximum size of the Link header in bytes. A longer header is omitted, and
// the links are in the Bundle only. Links repeat the query, and proxies and clients reject
// responses with more than 8 to 16 KiB of headers.
const maxLinkHeader = 4 << 10

// setLinks sets the Link header (RFC 8288) to the links of a page.
func setLinks(header http.Header, links []link) {
	var value strings.Builder
	for i, l := range links {
		if i > 0 {
			value.WriteString(", ")
		}
		value.WriteString("<" + l.url + `>; rel="` + l.relation + `"`)
	}
	if value.Len() <= maxLinkHeader {
		header.Set("Link", value.String())
	}
}

// address joins an address and a query string.
func address(base, query string) string {
	if query == "" {
		return base
	}
	return base + "?" + query
}
