package search

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

const (
	patientType       = "Patient"
	relatedPersonType = "RelatedPerson"
	// paramLink is the search parameter of Patient.link.
	paramLink = "link"
)

var everythingResultParameters = map[string]resultParameter{
	paramType:      {parse: (*parser).verbatim},
	"_since":       {parse: (*parser).since},
	"_count":       {parse: (*parser).count},
	"_summary":     {parse: (*parser).summary},
	"_elements":    {parse: (*parser).elements},
	paramPageToken: {parse: (*parser).pageToken},
	paramFormat:    {parse: (*parser).verbatim},
	paramPretty:    {parse: (*parser).verbatim},
}

// ParseEverything parses the parameters of the operation $everything on the patient
// opts.Everything. The result is ordered by creation, the oldest record first, so that a record
// created while a client reads the pages is on the last page. R4
// patient-operation-everything.html. Errors: Errors.
func ParseEverything(values url.Values, opts Options) (Query, error) {
	if given := nonEmpty(values[paramType]); len(given) > 1 { // R4 lets clients repeat this parameter only
		values = maps.Clone(values)
		values[paramType] = []string{strings.Join(given, ",")}
	}
	opts.Type = "" // the path has the type of the patient, not the types of the result
	query, err := parse(values, opts, everythingResultParameters, false)
	query.Sort = []store.Sort{{Field: store.SortCreated}}
	return query, err
}

// restrictToEverything restricts the query to the patient, to the members of the patient's
// compartment and to the records to which these refer.
func (p *parser) restrictToEverything() {
	conditions := everything(p.Everything)
	p.query.ByType = map[string]store.Condition{}
	for _, typeName := range p.query.Types {
		p.query.ByType[typeName] = conditions[typeName]
	}
	for _, typeName := range everythingMembers() {
		p.reaches[typeName] = true
	}
}

// everythingMembers returns the types with records in the compartment of a patient, Device included.
func everythingMembers() []string {
	of, _ := r4.CompartmentOf(patientType)
	types := []string{}
	for _, name := range namesOfTypes() {
		if _, ok := of.Member(name); ok {
			types = append(types, name)
		}
	}
	return types
}

// everything returns, for each supported type, the condition that selects the records that
// $everything returns for the patient with the id. References to the types of the compartment are
// not followed, except Patient.link of the patient. Otherwise the other members of a Group, which
// are other patients, would be in the result.
func everything(id string) map[string]store.Condition {
	self := store.IDIn{strings.ToLower(id)}
	members := map[string]store.Condition{}
	for _, typeName := range everythingMembers() {
		members[typeName], _ = InCompartment(patientType, id, typeName)
	}
	members[patientType] = store.Any{self, members[patientType]}

	conditions := maps.Clone(members)
	linked := store.ReferredBy{Type: patientType, Param: paramLink, Where: self}
	for _, typeName := range []string{patientType, relatedPersonType} {
		conditions[typeName] = store.Any{members[typeName], linked}
	}
	for _, typeName := range namesOfTypes() {
		if members[typeName] != nil {
			continue
		}
		either := store.Any{}
		for _, from := range slices.Sorted(maps.Keys(members)) {
			for _, param := range referencesFrom(from, []string{typeName}) {
				either = append(either, store.ReferredBy{Type: from, Param: param, Where: members[from]})
			}
		}
		conditions[typeName] = either
	}
	return conditions
}
