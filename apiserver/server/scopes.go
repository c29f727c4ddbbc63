package server

import (
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/gate"
	"github.com/paddock-health/paddock/apiserver/access/smart"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/store"
)

// restrict returns the records of a type on which the caller's scopes allow a verb. It is nil if
// they allow it on all. A scope with invalid search parameters grants nothing.
func (v *viewer) restrict(verb, recordType string) (*gate.Restriction, error) {
	grants, unrestricted := smart.Restrictions(v.caller, verb, recordType)
	if unrestricted {
		return nil, nil
	}
	bases := v.fhirURLs(v.site)
	either := store.Any{}
	for _, grant := range grants {
		if condition, ok := v.granted(recordType, grant, bases); ok {
			either = append(either, condition)
		}
	}
	return &gate.Restriction{
		Condition: either,
		Holds: func(key store.Key, body store.Body) bool {
			return search.Matches(decideIDs(either, key), extract.Values(recordType, body.JSON), bases)
		},
		Refusal: &access.ForbiddenError{Caller: v.caller.Name, Action: v.action(verb, recordType)},
	}, nil
}

// granted returns the condition of the records to which one scope grants access. It reports false
// if the scope grants none.
func (v *viewer) granted(recordType string, grant smart.Restriction, bases []string) (store.Condition, bool) {
	var all store.All
	if grant.Patient != "" {
		members, inside := search.InCompartment("Patient", grant.Patient, recordType)
		if !inside {
			return nil, false
		}
		if recordType == "Patient" { // R4's compartment has the Patients that link to this one, but not this one
			members = store.Any{store.IDIn{grant.Patient}, members}
		}
		all = append(all, members)
	}
	if grant.Search != nil {
		query, err := search.ParseCriteria(grant.Search, search.Options{Type: recordType, Now: time.Now(), Zone: v.site.Zone, Bases: bases})
		if err != nil {
			return nil, false
		}
		all = append(all, query.Where)
	}
	return all, true
}

// decideIDs replaces the conditions on ids in a condition by their result for one record, because
// search.Matches tests only index values.
func decideIDs(condition store.Condition, key store.Key) store.Condition {
	each := func(parts []store.Condition) []store.Condition {
		decided := make([]store.Condition, len(parts))
		for i, part := range parts {
			decided[i] = decideIDs(part, key)
		}
		return decided
	}
	switch condition := condition.(type) {
	case store.All:
		return store.All(each(condition))
	case store.Any:
		return store.Any(each(condition))
	case store.Not:
		return store.Not{Condition: decideIDs(condition.Condition, key)}
	case store.IDIn:
		if slices.ContainsFunc(condition, func(id string) bool { return strings.EqualFold(id, key.ID) }) {
			return store.All{}
		}
		return store.Any{}
	default:
		return condition
	}
}

// hasScope reports whether the caller's scopes grant any right to a FHIR type.
func hasScope(caller access.Caller) bool {
	return caller.SMART && slices.ContainsFunc(r4.Types, func(kind r4.Type) bool {
		return slices.ContainsFunc([]string{"get", "list", "create", "update", "delete"}, func(verb string) bool {
			granted, all := smart.Restrictions(caller, verb, kind.Name)
			return all || len(granted) > 0
		})
	})
}
