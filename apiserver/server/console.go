package server

import (
	"net/http"
	"net/url"

	"github.com/paddock-health/paddock/apiserver/console"
)

// withConsole serves the console at its paths, and all other requests with next (console.New).
func (s *Server) withConsole(next http.Handler) http.Handler {
	return console.New(s.consoleOf, next)
}

// consoleOf returns what the console of a Site needs. It reports false for a hidden Site, as for a
// Site that does not exist, because a browser sends no token with the request for a page. Token
// endpoints without https are left out.
func (s *Server) consoleOf(siteID string) (console.Site, bool) {
	site, found := s.config.Sites.Find(siteID)
	if !found || site.Access.Hidden {
		return console.Site{}, false
	}
	var described console.Site
	for _, c := range site.Issuers.Consoles() {
		if endpoint, err := url.Parse(c.Document.TokenEndpoint); err == nil && endpoint.Scheme == "https" {
			described.TokenOrigins = append(described.TokenOrigins, "https://"+endpoint.Host)
		}
	}
	return described, true
}
