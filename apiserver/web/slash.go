package web

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
)

// StripSlash is a chi middleware that routes a path with a trailing slash like the path without it.
// FHIR R4 uses both: [base]/[type]/ in http.html#create, [base]/[type] in #search. Unlike chi's
// StripSlashes, it preserves an escaped slash in a path parameter.
func StripSlash(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if routed := chi.RouteContext(r.Context()); routed != nil {
			routed.RoutePath = RoutePath(r.URL)
		}
		next.ServeHTTP(w, r)
	})
}

// RoutePath returns the path by which StripSlash routes a URL: RawPath if it is set, otherwise Path,
// without a trailing slash.
func RoutePath(u *url.URL) string {
	path := cmp.Or(u.RawPath, u.Path)
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}
