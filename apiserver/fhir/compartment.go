package fhir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
)

const (
	// allMembers stands in a path for all types that are in a compartment.
	allMembers = "*"
	// membersPattern matches what stands behind an id in the path of a search: a type, or all
	// types. It matches neither the name of an operation nor anything that begins with _.
	membersPattern = `{members:[A-Za-z][A-Za-z-]*|\*|%2[Aa]}`
)

// compartment is the compartment that the path of a request names to search in.
type compartment struct {
	search.Compartment
	// path is where the search is below the base, as the request spells it.
	path string
}

// enterCompartment makes the record that the path names the compartment to search in, and
// members the type to search. The path of a POST may leave members out, for all types.
// Errors: *typeUnknownError, *outsideError.
func (r *request) enterCompartment(members string) error {
	var searched r4.Type
	if members == "_search" {
		members = allMembers
	}
	if members != allMembers {
		var ok bool
		if searched, ok = r4.TypeOf(members); !ok {
			return &typeUnknownError{segment: members}
		}
	}
	of, ok := r4.CompartmentOf(r.kind.Name)
	if _, inside := of.Member(searched.Name); !ok || members != allMembers && !inside {
		return &outsideError{of: r.kind, id: r.id, members: searched, compartment: of}
	}
	r.compartment = &compartment{
		Compartment: search.Compartment{Compartment: of, ID: r.id},
		path:        r.segment + "/" + r.id + "/" + members,
	}
	r.kind, r.id = searched, ""
	if members != allMembers {
		r.segment = members
	}
	return nil
}

// outsideError says that the path of a search names no compartment, or a type that is not in
// it. R4 http.html#vsearch.
type outsideError struct {
	of          r4.Type
	id          string
	members     r4.Type
	compartment r4.Compartment
}

func (e *outsideError) Error() string {
	if e.compartment.Type == "" {
		having := make([]string, len(r4.Compartments))
		for i, c := range r4.Compartments {
			having[i] = c.Type
		}
		return fmt.Sprintf("%s records have no compartment to search in; FHIR R4 defines one for each %s", e.of.Name, list(having, "and"))
	}
	said := fmt.Sprintf("%s records are not in the compartment of a %s; FHIR R4 puts %s there", e.members.Name, e.of.Name, list(e.compartment.Types(), "and"))
	params := search.ReferenceParameters(e.members.Name, e.of.Name)
	for i, param := range params {
		params[i] = e.members.Name + "?" + param + "=" + e.of.Name + "/" + e.id
	}
	if len(params) > 0 {
		said += "; search " + list(slices.Compact(params), "or") + " instead"
	}
	return said
}

// list joins names as a sentence does.
func list(names []string, word string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}
