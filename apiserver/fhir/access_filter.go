package fhir

import (
	"errors"
	"strings"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// accessFilter returns the access filter of a search. It has the types in searched, for which the
// right to list has already been checked, and those of the types in reached that the caller may
// list. For the search, records of other types do not exist.
func (r *request) accessFilter(searched, reached []string) (store.Access, error) {
	filter := store.Access{}
	for _, typeName := range searched {
		filter[typeName] = store.All{}
	}
	listed, err := r.listableTypes(reached)
	for _, typeName := range listed {
		filter[typeName] = store.All{}
	}
	if forbidden := new(access.ForbiddenError); errors.As(err, &forbidden) {
		err = nil
	}
	return filter, err
}

// listableTypes returns those of the types that the caller may list. If any may not be listed, the
// error is an *access.ForbiddenError. With any other error it returns no types.
func (r *request) listableTypes(typeNames []string) ([]string, error) {
	var listed []string
	var refused error
	for _, typeName := range typeNames {
		kind, _ := r4.TypeOf(typeName)
		err := r.authorizeList(kind)
		forbidden := new(access.ForbiddenError)
		switch {
		case err == nil:
			listed = append(listed, typeName)
		case errors.As(err, &forbidden):
			refused = err
		default:
			return nil, err
		}
	}
	return listed, refused
}

// authorizeGet checks the right to get a record. Without it, a patch has no body in its response, may not
// have operations that use stored values, and gets this error instead of one that could show them.
func (r *request) authorizeGet(key store.Key) error {
	kind, _ := r4.TypeOf(key.Type)
	return r.authorizer.Authorize(r.Context(), r.caller, r.site.Access,
		access.Action{Verb: "get", Group: Group, Resource: kind.Resource, Name: strings.ToLower(key.ID)})
}
