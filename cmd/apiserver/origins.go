package main

import (
	"net/http"
	"strings"
)

// crossOrigin answers browsers in pages of other origins, where the site allows them.
func (s *server) crossOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		below, _ := strings.CutPrefix(r.URL.Path, "/site/")
		siteID, _, _ := strings.Cut(below, "/")
		if site, found := s.sites.Find(siteID); found && site.CORS != nil {
			site.CORS.ServeHTTP(w, r, next.ServeHTTP)
			return
		}
		next.ServeHTTP(w, r)
	})
}
