package search

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// compartmentOf returns the compartment of the record X of a type.
func compartmentOf(t *testing.T, typeName string) *Compartment {
	t.Helper()
	found, ok := r4.CompartmentOf(typeName)
	if !ok {
		t.Fatalf("%s has no compartment", typeName)
	}
	return &Compartment{found, "X"}
}

func TestCompartments(t *testing.T) {
	refers := func(param, typeName string) store.Condition { return to(param, "", typeName, "x") }
	byType := func(pairs ...any) map[string]store.Condition {
		all := map[string]store.Condition{}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i].(string)] = pairs[i+1].(store.Condition)
		}
		return all
	}
	tests := map[string]struct {
		of, typeName, query string
		types               string
		want                map[string]store.Condition
		where               store.Condition
		err                 string
	}{
		"one type":          {of: "Patient", typeName: "Group", types: "Group", want: byType("Group", refers("member", "Patient"))},
		"of practitioner":   {of: "Practitioner", typeName: "Patient", types: "Patient", want: byType("Patient", refers("general-practitioner", "Practitioner"))},
		"the record itself": {of: "Practitioner", typeName: "Practitioner", types: "Practitioner", want: byType("Practitioner", store.IDIn{"x"})},
		"all types": {of: "RelatedPerson", types: "Patient Person RelatedPerson", want: byType(
			"Patient", refers("link", "RelatedPerson"), "Person", refers("link", "RelatedPerson"), "RelatedPerson", store.IDIn{"x"})},
		"some types": {of: "Patient", query: "_type=person,RelatedPerson", types: "Person RelatedPerson", want: byType(
			"Person", refers("patient", "Patient"), "RelatedPerson", refers("patient", "Patient"))},
		"more conditions": {of: "Patient", typeName: "Person", query: "gender=male", types: "Person", want: byType("Person", refers("patient", "Patient")), where: store.All{code("gender", "male")}},
		"a common parameter": {of: "Patient", query: "identifier=1", types: "Group Patient Person RelatedPerson", where: store.All{code("identifier", "1")}, want: byType(
			"Group", refers("member", "Patient"), "Patient", refers("link", "Patient"), "Person", refers("patient", "Patient"), "RelatedPerson", refers("patient", "Patient"))},
		"a type outside":           {of: "Patient", query: "_type=Location", err: "Location is not in the compartment of a Patient; give one or more of Group, Patient, Person, RelatedPerson"},
		"some outside":             {of: "Device", query: "_type=Group,Device", err: "Device is not in the compartment of a Device; give one or more of Group"},
		"_type behind a type":      {of: "Patient", typeName: "Group", query: "_type=Group", err: "without a type in the path"},
		"a parameter of some only": {of: "Patient", query: "gender=male", err: `"gender" is not known for Group and Patient and Person and RelatedPerson`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			query, err := Parse(values(t, test.query), Options{Type: test.typeName, Compartment: compartmentOf(t, test.of)})
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %v, want an error with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, query.ByType); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.where, query.Where); diff != "" {
				t.Error(diff)
			}
			if got := strings.Join(query.Types, " "); got != test.types {
				t.Errorf("searches %s, want %s", got, test.types)
			}
			if len(query.Patients) > 0 {
				t.Errorf("includes the patients %v, which no parameter names", query.Patients)
			}
		})
	}
}

// TestCompartmentBySeveral parses a membership by several parameters. R4 has none for the supported
// types.
func TestCompartmentBySeveral(t *testing.T) {
	c := Compartment{r4.Compartment{Type: "Patient"}, "X"}
	want := store.Any{store.IDIn{"x"}, to("link", "", "Patient", "x"), to("patient", "", "Patient", "x")}
	if diff := cmp.Diff(store.Condition(want), c.condition(r4.Membership{Type: "Patient", Params: []string{"link", "patient"}, Self: true})); diff != "" {
		t.Error(diff)
	}
}
