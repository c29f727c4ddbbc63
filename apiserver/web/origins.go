package web

import (
	"net/http"

	"github.com/rs/cors"
)

// preflightAge is for how many seconds a browser may remember that it may ask: two hours,
// the most that browsers do.
const preflightAge = 7200

// AllowOrigins lets pages of some origins use the APIs from a browser (Fetch, 3.2 CORS
// protocol): all methods, any header, tokens in Authorization, but no cookies.
func AllowOrigins(origins []string) *cors.Cors {
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders: []string{"*"},
		ExposedHeaders: []string{"Accept-Patch", "Allow", "ETag", "Link", "Location", "Retry-After", "WWW-Authenticate", requestIDHeader, correlationIDHeader},
		MaxAge:         preflightAge,
	})
}
