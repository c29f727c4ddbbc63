package fhir

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/web"
)

// Routes returns every method at every path of the facade, sorted: for each resource type in both of
// its spellings. It omits HEAD, and the paths whose only difference is an escaped $.
func Routes() []web.Route {
	var all []web.Route
	for pattern, supported := range (&handler{}).paths() {
		if strings.Contains(pattern, "%24") {
			continue
		}
		if !strings.Contains(pattern, "{type}") {
			all = appendRoutes(all, strings.TrimSuffix(pattern, "/"), pattern, r4.Type{}, supported)
			continue
		}
		for _, kind := range r4.Types {
			for _, spelling := range []string{kind.Segment, kind.Name} {
				if serves(pattern, spelling) {
					all = appendRoutes(all, strings.Replace(pattern, "{type}", spelling, 1), pattern, kind, supported)
				}
			}
		}
	}
	web.SortRoutes(all)
	return all
}

func appendRoutes(all []web.Route, path, pattern string, kind r4.Type, supported methods) []web.Route {
	for method, matched := range supported {
		all = append(all, web.Route{
			Method: method, Path: path, Pattern: pattern, Type: kind.Name, Public: matched.public,
			Right: access.Action{Verb: matched.verb, Group: Group, Resource: kind.Resource},
		})
	}
	return all
}

// serves reports whether the facade serves a path with a pattern for a type.
func serves(pattern, spelling string) bool {
	kind, _ := r4.TypeOf(spelling)
	if _, has := r4.CompartmentOf(kind.Name); !has && isCompartment(pattern) {
		return false
	}
	r := &http.Request{Pattern: pattern, URL: &url.URL{}}
	r.SetPathValue("type", spelling)
	if strings.Contains(pattern, "{id}") {
		r.SetPathValue("id", "1")
	}
	if strings.Contains(pattern, "{members}") {
		r.SetPathValue("members", allMembers)
	}
	return exists(r)
}

// isCompartment reports whether a pattern is that of a search in a compartment.
func isCompartment(pattern string) bool {
	return strings.HasPrefix(pattern, "/{type}/{id}/{members}") || pattern == "/{type}/{id}/_search"
}
