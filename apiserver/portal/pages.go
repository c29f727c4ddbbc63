package portal

import (
	"net/http"

	"github.com/paddock-health/paddock/apiserver/errorcode"
	"github.com/paddock-health/paddock/apiserver/openapi"
	"github.com/paddock-health/paddock/apiserver/web"
)

// link is an address on a landing page, and what is there.
type link struct {
	Name, Address, Text string
	// Base is true for the base address of an API, which has no page of its own: the landing page shows
	// it without a link.
	Base bool
}

// linksOf returns the links of the landing page of a site.
func (h *handler) linksOf(site Site) []link {
	return []link{
		{"fhir", site.BaseURL + "/fhir", "FHIR R4 API, the administration records", true},
		{"metadata", site.BaseURL + "/fhir/metadata", "Capabilities of the FHIR API", false},
		{"ahds", site.BaseURL + "/ahds/v1", "AHDS API: slots, event groups, webhooks and events", true},
		{"docs", site.BaseURL + "/docs", "API reference, with requests to try", false},
		{"openapi", site.BaseURL + "/openapi.json", "OpenAPI document of both APIs", false},
		{"console", site.BaseURL + "/console", "Console", false},
		{"errors", h.ErrorPages.Address(), "Codes of errors", false},
		{"guides", Guides, "Guides", false},
	}
}

// index serves /. It does not say which sites there are.
func (h *handler) index(w http.ResponseWriter, r *http.Request) error {
	if prefersHTML(r) {
		return respondPage(w, r, http.StatusOK, "index.html", h.ErrorPages.Address())
	}
	return respondJSON(w, r, map[string]any{
		"name": "Paddock", "sites": "/site/{siteId}", "links": map[string]string{"errors": h.ErrorPages.Address(), "guides": Guides},
	})
}

// landing serves /site/{siteId}.
func (h *handler) landing(w http.ResponseWriter, r *http.Request, site Site) error {
	links := h.linksOf(site)
	if prefersHTML(r) {
		return respondPage(w, r, http.StatusOK, "landing.html", struct {
			Site  Site
			Links []link
		}{site, links})
	}
	addresses := map[string]string{}
	for _, l := range links {
		addresses[l.Name] = l.Address
	}
	return respondJSON(w, r, map[string]any{"site": site.ID, "links": addresses})
}

// document serves /site/{siteId}/openapi.json.
func (h *handler) document(w http.ResponseWriter, r *http.Request, site Site) error {
	document, err := openapi.New("/site/" + site.ID)
	if err != nil {
		return err
	}
	return respondKnown(w, r, mediaJSON, document.Hash, document.JSON)
}

// errors serves /errors: all codes.
func (h *handler) errors(w http.ResponseWriter, r *http.Request) error {
	if prefersHTML(r) {
		return respondPage(w, r, http.StatusOK, "errors.html", errorcode.All())
	}
	codes := map[string]string{}
	for _, entry := range errorcode.All() {
		codes[entry.Code] = entry.Text
	}
	return respondJSON(w, r, codes)
}

// errorPage serves /errors/{code}, and the style sheet and the icon of the pages.
func (h *handler) errorPage(w http.ResponseWriter, r *http.Request) error {
	code := web.PathParameter(r, "code")
	if code == "portal.css" || code == "icon.svg" {
		return serveAsset(w, r, code)
	}
	entry, ok := errorcode.Lookup(code)
	if !ok {
		return &web.UnknownPathError{Paths: "/errors lists the codes that have a page"}
	}
	if prefersHTML(r) {
		return respondPage(w, r, http.StatusOK, "error.html", entry)
	}
	return respondJSON(w, r, map[string]string{"code": entry.Code, "text": entry.Text, "cause": entry.Cause, "remedy": entry.Remedy})
}
