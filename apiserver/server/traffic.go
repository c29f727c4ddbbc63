package server

import (
	"net/http"

	"github.com/felixge/httpsnoop"
)

// counted counts the requests to the APIs of Sites that exist. It leaves out streams, whose
// responses last as long as the client reads.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		siteID, _ := siteAndAPI(r.URL.Path)
		if apiOf(r.URL.Path) == apiNone {
			next.ServeHTTP(w, r)
			return
		}
		response := httpsnoop.CaptureMetrics(next, w, r)
		if isEventStream(w.Header()) {
			return
		}
		if _, found := s.config.Sites.Find(siteID); found {
			s.traffic.Record(siteID, response.Code, response.Duration)
		}
	})
}
