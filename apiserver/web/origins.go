package web

import (
	"net/http"

	"github.com/rs/cors"
)

// preflightAge is how long a browser may cache a preflight response, in seconds. Two hours is the
// maximum of Chromium. Other browsers have maximums of their own.
const preflightAge = 7200

// AllowOrigins returns the CORS middleware for pages of the given origins (Fetch §3.2). It allows all
// methods of the APIs except OPTIONS, and any header, including tokens in Authorization, but no
// cookies. An empty list allows all origins.
func AllowOrigins(origins []string) *cors.Cors {
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders: []string{"*"},
		ExposedHeaders: []string{
			"Accept-Patch", "Age", "Allow", "Content-Location", "ETag", "Link", "Location", "RateLimit", "RateLimit-Policy", "Retry-After",
			"WWW-Authenticate", "X-Progress", requestIDHeader, correlationIDHeader,
		},
		MaxAge: preflightAge,
	})
}
