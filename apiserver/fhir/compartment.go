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

// allMembers stands for all types of a compartment in a path.
const allMembers = "*"

// membersName matches the segment after an id in the path of a search: a possible type, or
// allMembers, which may be percent-encoded.
var membersName = regexp.MustCompile(`^([A-Za-z][A-Za-z-]*|\*|%2[Aa])$`)

// canHaveMembers reports whether the segment after the id in the path of r can name the type to
// search. It is true for a path without such a segment.
func canHaveMembers(r *http.Request) bool {
	return !strings.Contains(r.Pattern, "{members}") || membersName.MatchString(r.PathValue("members"))
}

// compartment is the compartment that a request searches.
type compartment struct {
	search.Compartment
	// path is the path of the search relative to the base, as the request spells it.
	path string
}

// enterCompartment makes r a search in the compartment of the record in the path. It sets
// r.compartment, sets r.kind and r.segment to the type in members, and clears r.id. For allMembers,
// r.kind becomes empty and r.segment stays. Errors: *typeUnknownError, *notInCompartmentError.
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
		return &notInCompartmentError{of: r.kind, id: r.id, members: searched, compartment: of}
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

// notInCompartmentError is the error of a search in a type that has no compartments, or for a type
// outside of the compartment. R4 http.html#vsearch.
type notInCompartmentError struct {
	of          r4.Type
	id          string
	members     r4.Type
	compartment r4.Compartment
}

func (e *notInCompartmentError) Error() string {
	if e.compartment.Type == "" {
		having := make([]string, len(r4.Compartments))
		for i, c := range r4.Compartments {
			having[i] = c.Type
		}
		return fmt.Sprintf("%s records have no compartment; search in one of a type for which FHIR R4 defines compartments: %s", e.of.Name, joinNames(having, "and"))
	}
	message := fmt.Sprintf("%s records are not in the compartment of a %s; FHIR R4 puts %s there", e.members.Name, e.of.Name, joinNames(e.compartment.Types(), "and"))
	params := search.ReferenceParameters(e.members.Name, e.of.Name)
	for i, param := range params {
		params[i] = e.members.Name + "?" + param + "=" + e.of.Name + "/" + e.id
	}
	if len(params) > 0 {
		message += "; search " + joinNames(slices.Compact(params), "or") + " instead"
	}
	return message
}

// joinNames joins names with commas, and with word before the last one.
func joinNames(names []string, word string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}
