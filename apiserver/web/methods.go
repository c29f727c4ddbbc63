package web

import (
	"maps"
	"net/http"
	"slices"
)

// Methods are what can be done at one path, by HTTP method. HEAD is wherever GET is.
type Methods[T any] map[string]T

// Find returns what a method does.
func (m Methods[T]) Find(method string) (T, bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	what, ok := m[method]
	return what, ok
}

// Allowed lists the methods for the Allow header (RFC 9110 §10.2.1).
func (m Methods[T]) Allowed() []string {
	names := slices.Collect(maps.Keys(m))
	if _, ok := m[http.MethodGet]; ok {
		names = append(names, http.MethodHead)
	}
	slices.Sort(names)
	return names
}
