package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-chi/chi/v5"
)

// StripSlash is a chi middleware that routes a path by RoutePath: with a trailing slash like the path
// without it. FHIR R4 uses both: [base]/[type]/ in http.html#create, [base]/[type] in #search. Unlike
// chi's StripSlashes, it preserves an escaped slash in a path parameter.
func StripSlash(next http.Handler) http.Handler { return routeBy(RoutePath, next) }

// DecodeUnreserved is a chi middleware that routes a path with escapes of unreserved characters like
// the path with the characters (RFC 3986 §6.2.2.2). A trailing slash is significant.
func DecodeUnreserved(next http.Handler) http.Handler { return routeBy(withoutEscapes, next) }

// routeBy returns a handler that sets the path by which chi routes a request, and calls next.
func routeBy(routePath func(*url.URL) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if routed := chi.RouteContext(r.Context()); routed != nil {
			routed.RoutePath = routePath(r.URL)
		}
		next.ServeHTTP(w, r)
	})
}

// RoutePath returns the path by which StripSlash routes a URL: RawPath if it is set, with unreserved
// characters in place of their escapes, otherwise Path. It has no trailing slash.
func RoutePath(u *url.URL) string {
	path := withoutEscapes(u)
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

// unreserved matches the escape of an unreserved character: a letter, a digit, or one of - . _ ~.
// RFC 3986 §2.3.
var unreserved = regexp.MustCompile(`%(2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])`)

// withoutEscapes returns Path or, if RawPath is set, RawPath with unreserved characters in place of
// their escapes. Other escapes remain, so that the path has the segments of RawPath, and its segments
// are decoded (PathParameter) to the same values.
func withoutEscapes(u *url.URL) string {
	if u.RawPath == "" {
		return u.Path
	}
	return unreserved.ReplaceAllStringFunc(u.RawPath, func(escape string) string {
		character, _ := url.PathUnescape(escape) // unreserved matches only valid escapes
		return character
	})
}
