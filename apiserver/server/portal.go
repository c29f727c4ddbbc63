package server

import (
	"net/http"
	"strings"

	"github.com/paddock-health/paddock/apiserver/errorcode"
	"github.com/paddock-health/paddock/apiserver/portal"
)

// errorPages returns the address of the pages that explain the codes of errors. It is the same for
// all Sites, so that it reveals nothing about them.
func (s *Server) errorPages() errorcode.Pages {
	return errorcode.Pages(s.config.PublicURL + "/errors")
}

// newPortal returns the handler of the pages and documents that explain the APIs. As for metadata of
// the FHIR API, a request needs a token only if the Site is hidden.
func (s *Server) newPortal() http.Handler {
	return portal.New(portal.Config{
		Find: func(r *http.Request, siteID string) (portal.Site, error) {
			site, err := s.admission.find(r, siteID)
			return portal.Site{ID: site.ID, BaseURL: strings.TrimSuffix(site.BaseURL, "/fhir")}, err
		},
		ErrorPages: s.errorPages(),
		Log:        s.config.Log,
	})
}

// isPortal reports whether the portal serves a path.
func isPortal(path string) bool {
	if path == "/" || path == "/errors" || strings.HasPrefix(path, "/errors/") {
		return true
	}
	siteID, below := siteAndAPI(path)
	return siteID != "" && (below == "" || below == "openapi.json" || below == "docs")
}
