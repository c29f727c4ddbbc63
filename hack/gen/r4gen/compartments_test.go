package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompartments(t *testing.T) {
	programs := []searchProgram{
		{base: "Group", code: "member", kind: "reference", targets: []string{"Device", "Patient"}},
		{base: "Patient", code: "link", kind: "reference", targets: []string{"Patient"}},
		{base: "Patient", code: "name", kind: "string"},
		{base: "Patient", code: "organization", kind: "reference", targets: []string{"Organization"}},
	}
	definition := func(name, code string, resources ...compartmentResource) compartmentDefinition {
		return compartmentDefinition{URL: compartmentPrefix + name, Code: code, Search: true, Resource: resources}
	}
	patient := compartmentResource{"Patient", []string{self, "link"}}
	tests := map[string]struct {
		definition compartmentDefinition
		want       []compartment
		fails      bool
	}{
		"members": {
			definition: definition("patient", "Patient", patient, compartmentResource{"Group", []string{"member"}}, compartmentResource{"Location", nil}, compartmentResource{"Account", []string{"subject"}}),
			want:       []compartment{{compartmentPrefix + "patient", "Patient", []membership{{"Group", []string{"member"}, false}, {"Patient", []string{"link"}, true}}}},
		},
		"an example":                {definition: definition("example", "Patient", patient)},
		"no members":                {definition: definition("patient", "Patient", compartmentResource{"Location", nil})},
		"of a type not kept":        {definition: definition("encounter", "Encounter", compartmentResource{"Patient", []string{"link"}})},
		"no such parameter":         {definition: definition("patient", "Patient", compartmentResource{"Group", []string{"subject"}}), fails: true},
		"no reference":              {definition: definition("patient", "Patient", compartmentResource{"Patient", []string{"name"}}), fails: true},
		"a reference to others":     {definition: definition("patient", "Patient", compartmentResource{"Patient", []string{"organization"}}), fails: true},
		"another type for the self": {definition: definition("patient", "Patient", compartmentResource{"Group", []string{self}}), fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := &definitions{compartments: []compartmentDefinition{test.definition}}
			got, err := d.compartmentsOf(programs)
			if (err != nil) != test.fails {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(compartment{}, membership{})); diff != "" && !test.fails {
				t.Error(diff)
			}
		})
	}
}
