package main

import "net/http"

// crossOrigin answers browsers in pages of other origins, where the site allows them.
func (s *server) crossOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		siteID, _ := siteAndAPI(r.URL.Path) // apis.go
		if site, found := s.sites.Find(siteID); found && site.CORS != nil {
			site.CORS.ServeHTTP(w, r, next.ServeHTTP)
			return
		}
		next.ServeHTTP(w, r)
	})
}
