package fhir

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
)

// allMembers stands in a path for all types that are in a compartment.
const allMembers = "*"

// membersName matches what may stand behind an id in the path of a search: what could be a type,
// or all types.
var membersName = regexp.MustCompile(`^([A-Za-z][A-Za-z-]*|\*|%2[Aa])$`)

// members serves a search behind an id. Anything else there, such as the name of an operation,
// is no path of the facade.
func (h *handler) members(next http.HandlerFunc) http.HandlerFunc {
	unknown := h.fails(notRouted)
	return func(w http.ResponseWriter, r *http.Request) {
		if !membersName.MatchString(r.PathValue("members")) {
			unknown(w, r)
			return
		}
		next(w, r)
	}
}

// ofAllMembers serves a search by POST whose path names no type, as in R5: it is of all types.
func ofAllMembers(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.SetPathValue("members", allMembers)
		next(w, r)
	}
}

// compartment is the compartment that the path of a request names to search in.
type compartment struct {
	search.Compartment
	// path is where the search is below the base, as the request spells it.
	path string
}

// enterCompartment makes the record that the path names the compartment to search in, and
// members the type to search, or all types. Errors: *typeUnknownError, *outsideError.
func (r *request) enterCompartment(members string) error {
	var searched r4.Type
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
