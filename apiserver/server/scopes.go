package server

import (
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/gate"
	"github.com/paddock-health/paddock/apiserver/access/privacy"
	"github.com/paddock-health/paddock/apiserver/access/smart"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/store"
)

// restrict returns the records of a type on which the caller's scopes allow a verb, or nil if the
// scopes allow it on all records. A scope with invalid search parameters grants nothing.
func (v *viewer) restrict(verb, recordType string) (*gate.Restriction, error) {
	grants, unrestricted := smart.Restrictions(v.caller, verb, recordType)
	linked := v.ofReadablePatients(verb, recordType)
	if unrestricted && store.IsEverything(linked) {
		return nil, nil
	}
	bases := v.fhirURLs(v.site)
	either := store.Any{}
	if unrestricted {
		either = append(either, linked)
	}
	for _, grant := range grants {
		condition, ok := v.granted(recordType, grant, bases)
		if !ok {
			continue
		}
		if grant.Patient == "" {
			condition = store.All{condition, linked}
		}
		either = append(either, condition)
	}
	return &gate.Restriction{
		Condition: either,
		Holds: func(key store.Key, body store.Body) bool {
			return search.Matches(decideIDs(either, key), extract.Values(recordType, body.JSON), bases)
		},
		Refusal: &access.ForbiddenError{Caller: v.caller.Name, Action: v.action(verb, recordType)},
	}, nil
}

// ofReadablePatients returns the condition that hides records of Patients whom the caller's scopes do
// not open. It includes records without a link (privacy.LinkParams), and Devices of the Patient for
// whom the token was issued. It leaves out all other linked records, because Restriction.Holds has
// only the values of the record itself. The condition is true for all records if the type has no
// links, if the scopes open all Patients or none (privacy.View then decides), and for the verb create,
// which privacy.View does not limit either.
func (v *viewer) ofReadablePatients(verb, recordType string) store.Condition {
	if verb == "create" || !privacy.HasLinks(recordType) {
		return store.All{}
	}
	gets, getsAll := smart.Restrictions(v.caller, "get", "Patient")
	lists, listsAll := smart.Restrictions(v.caller, "list", "Patient")
	readable := slices.Concat(gets, lists)
	if getsAll || listsAll || len(readable) == 0 {
		return store.All{}
	}
	var unlinked store.All
	for _, param := range privacy.LinkParams(recordType) {
		unlinked = append(unlinked, store.Not{Condition: store.Present{Param: param}})
	}
	for _, grant := range readable {
		if grant.Patient == "" || grant.Search != nil {
			continue
		}
		if members, inside := search.InCompartment("Patient", grant.Patient, recordType); inside {
			return store.Any{unlinked, members}
		}
	}
	return unlinked
}

// granted returns the condition of the records of a type to which one scope grants access. It reports
// false if the scope grants access to no record of the type, or has invalid search parameters.
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
