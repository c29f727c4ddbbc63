package web

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// StripSlash is a chi middleware that routes a path with a slash at its end as the path without
// it. FHIR R4 writes both ([base]/[type]/ in http.html#create, [base]/[type] in #search). Unlike
// chi's StripSlashes it keeps an escaped slash within a path parameter.
func StripSlash(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := cmp.Or(r.URL.RawPath, r.URL.Path)
		if routed := chi.RouteContext(r.Context()); routed != nil && len(path) > 1 {
			routed.RoutePath = strings.TrimSuffix(path, "/")
		}
		next.ServeHTTP(w, r)
	})
}
