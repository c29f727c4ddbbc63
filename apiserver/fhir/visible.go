package fhir

import (
	"errors"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// visible says which records a search may meet: those of the types searched, which the
// caller may list, and of the others that it reaches those that the caller may list too.
// The rest is as if it did not exist.
func (r *request) visible(searched, reached []string) (store.Access, error) {
	visible := store.Access{}
	for _, typeName := range searched {
		visible[typeName] = store.All{}
	}
	listed, err := r.listed(reached)
	for _, typeName := range listed {
		visible[typeName] = store.All{}
	}
	if forbidden := new(access.ForbiddenError); errors.As(err, &forbidden) {
		err = nil
	}
	return visible, err
}

// listed are those of the types that the caller may list, and why not others.
func (r *request) listed(typeNames []string) ([]string, error) {
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
