package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/access"
)

// Methods maps the HTTP methods of one path to operations. HEAD has the operation of GET.
type Methods[T any] map[string]T

// Find returns the operation of a method. Errors: *MethodError if the path has no operation for the
// method.
func (m Methods[T]) Find(method string) (T, error) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	operation, ok := m[method]
	if !ok {
		return operation, &MethodError{Allowed: m.allowed()}
	}
	return operation, nil
}

// allowed returns the methods for the Allow header (RFC 9110 §10.2.1), sorted.
func (m Methods[T]) allowed() []string {
	names := slices.Collect(maps.Keys(m))
	if _, ok := m[http.MethodGet]; ok {
		names = append(names, http.MethodHead)
	}
	slices.Sort(names)
	return names
}

// Route is one method at one path of a facade, for descriptions of the API.
type Route struct {
	Method string
	// Path is the path relative to the base of the facade, with parameters in braces. It begins with
	// a slash, and is empty for the base itself.
	Path string
	// Pattern is the chi pattern that matches Path. It differs from Path if Path is for one resource
	// type.
	Pattern string
	// Type is FHIR's name of the resource type in Path. It is empty if Path has none.
	Type string
	// Right is the right that the route requires. If Right.Verb is empty, the operation itself
	// decides which rights it requires.
	Right access.Action
	// Public is true if the route needs no bearer token. Some public routes need one at a hidden
	// site.
	Public bool
}

// SortRoutes sorts routes by path and method.
func SortRoutes(routes []Route) {
	slices.SortFunc(routes, func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
}

// UnknownPathError is returned for a request to a path that does not exist in a facade.
type UnknownPathError struct {
	// Paths is the second part of the error message. It says which paths exist.
	Paths string
}

func (e *UnknownPathError) Error() string { return "this path does not exist; " + e.Paths }

// MethodError is returned for a request with a method that its path does not support.
type MethodError struct{ Allowed []string }

func (e *MethodError) Error() string {
	if len(e.Allowed) == 0 {
		return "no method is allowed at this path"
	}
	return "the method is not allowed at this path; allowed methods: " + strings.Join(e.Allowed, ", ")
}

// UnknownMethodError is returned for a request with a method that HTTP does not define.
type UnknownMethodError struct{}

func (e *UnknownMethodError) Error() string {
	return "the request method is not defined by HTTP; use GET, HEAD, POST, PUT, PATCH or DELETE"
}

// PathParameter returns the decoded value of a path parameter, or "" if the path has no such
// parameter. A value with an invalid escape is returned as it is.
func PathParameter(r *http.Request, name string) string {
	value := r.PathValue(name)
	if r.URL.RawPath == "" { // the router matched the decoded path
		return value
	}
	if unescaped, err := url.PathUnescape(value); err == nil {
		return unescaped
	}
	return value
}
