package server

import (
	"net/http"
	"time"
)

// recordTraffic counts a request to an API of a Site that exists.
func (s *Server) recordTraffic(r *http.Request, status int, took time.Duration) {
	if apiOf(r.URL.Path) == apiNone {
		return
	}
	siteID, _ := siteAndAPI(r.URL.Path)
	if _, found := s.config.Sites.Find(siteID); found {
		s.traffic.Record(siteID, status, took)
	}
}
