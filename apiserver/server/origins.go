package server

import "net/http"

// crossOrigin handles CORS for Sites that allow other origins. A hidden Site allows none: a
// preflight request has no token, and any CORS response would reveal that the Site exists.
func (s *Server) crossOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		siteID, _ := siteAndAPI(r.URL.Path) // apis.go
		if site, found := s.config.Sites.Find(siteID); found && site.CORS != nil && !site.Access.Hidden {
			site.CORS.ServeHTTP(w, r, next.ServeHTTP)
			return
		}
		next.ServeHTTP(w, r)
	})
}
