package search

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

func TestIncludes(t *testing.T) {
	tests := map[string]struct {
		want []store.Include
		err  string
	}{
		"_include=Patient:organization": {want: []store.Include{{Type: "Patient", Param: "organization"}}},
		"_include=patient:organization": {want: []store.Include{{Type: "Patient", Param: "organization"}}},
		"_include=Patient:link:Patient": {want: []store.Include{{Type: "Patient", Param: "link", Target: "Patient"}}},
		"_include=patient:general-practitioner:practitioner-role&_include=Patient:general-practitioner:PractitionerRole": {want: []store.Include{{Type: "Patient", Param: "general-practitioner", Target: "PractitionerRole"}}},
		"_include=Patient:*:practitioner-role":            {want: []store.Include{{Type: "Patient", Target: "PractitionerRole"}}},
		"_revinclude=Group:member:patient":                {want: []store.Include{{Type: "Group", Param: "member", Target: "Patient", Reverse: true}}},
		"_include=Patient:organization:patient":           {err: `"patient" is not a supported target type of Patient:organization; supported target types: Organization`},
		"_include:iterate=Organization:partof":            {want: []store.Include{{Type: "Organization", Param: "partof", Iterate: true}}},
		"_revinclude=Group:member&_revinclude=Group:*":    {want: []store.Include{{Type: "Group", Param: "member", Reverse: true}, {Type: "Group", Reverse: true}}},
		"_include=*&_include=*":                           {want: []store.Include{{}}},
		"_include=Patient:link,Patient:organization":      {want: []store.Include{{Type: "Patient", Param: "link"}, {Type: "Patient", Param: "organization"}}},
		"_revinclude:iterate=*":                           {want: []store.Include{{Reverse: true, Iterate: true}}},
		"_include=Device:organization":                    {want: []store.Include{{Type: "Device", Param: "organization"}}},
		"_include=Patient":                                {err: "write {type}:{reference parameter}"},
		"_include=Patient:a:b:c":                          {err: "write {type}:{reference parameter}"},
		"_include=Observation:subject":                    {err: `"Observation" is not a supported resource type`},
		"_include=Patient:name":                           {err: `"name" is not a reference parameter of Patient; supported reference parameters: general-practitioner, link, organization, patient`},
		"_include=Patient:organization:Patient":           {err: `"Patient" is not a supported target type of Patient:organization; supported target types: Organization`},
		"_include:exact=Patient:link":                     {err: "supported modifiers: iterate"},
		"_revinclude=Group:member:Group,Group:member:x":   {err: `value 2 of 2: "x" is not a supported target type of Group:member; supported target types: `},
		"_revinclude=Group:member&_revinclude=Group:code": {err: `repetition 2 of 2: "code" is not a reference parameter of Group`},
	}
	for query, test := range tests {
		got, err := Parse(values(t, query), options(Options{}))
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got %v, want an error with %q", query, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if diff := cmp.Diff(test.want, got.Includes); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}

func TestWholeSite(t *testing.T) {
	tests := map[string]struct {
		types []string
		err   string
	}{
		"":                                        {types: namesOfTypes()},
		"_id=1&_tag=a&identifier=b":               {types: namesOfTypes()},
		"telecom=phone|1&patient=Patient/1":       {types: namesOfTypes()},
		"_type=Patient,practitioner,Patient":      {types: []string{"Patient", "Practitioner"}},
		"_type=Patient,Person&name=x&_sort=name":  {types: []string{"Patient", "Person"}},
		"_type=Patient,Person&link:Device.type=x": {err: `"Device" is not a supported target type of link`},
		"_type=Patient,Device&type=x":             {err: `"type" is not known for Patient and Device; did you mean _type?`},
		"name=x":                                  {err: `"name" is not known for all resource types; supported parameters: _count,`},
		"_type=Observation":                       {err: `"Observation" is not a supported resource type`},
		"_type=Patient,":                          {err: `"" is not a supported resource type`},
		"_type=Patient&_type=Person":              {err: "is given more than once"},
		"_type=Patient,Person&_sort=species":      {err: "is not a sort key of Patient and Person"},
	}
	for query, test := range tests {
		got, err := Parse(values(t, query), Options{Now: now})
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got %v, want an error with %q", query, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if diff := cmp.Diff(test.types, got.Types); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}

// TestContractParameters gives each of the contract's parameters to each type (4.1).
func TestContractParameters(t *testing.T) {
	for _, kind := range r4.Types {
		for _, query := range []string{
			"_count=5", "_page_token=x", "_sort=-date", "_elements=id", "telecom=phone|1", "telecom=1", "_id=1", "identifier=s|1", "_include=Patient:organization",
			"patient=Patient/1", "patient=1", "_revinclude=RelatedPerson:patient", "_tag=s|c", "_security=s|c", "_profile=http://p",
		} {
			if _, err := Parse(values(t, query), Options{Type: kind.Name, SortByDate: true, Now: now}); err != nil {
				t.Errorf("%s?%s: %v", kind.Name, query, err)
			}
		}
	}
	named, err := Parse(values(t, "patient=A,Patient/b,Practitioner/p,https://h.example/fhir/Patient/c,https://other.example/Patient/d"),
		Options{Type: "Device", Bases: []string{"https://h.example/fhir"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, named.Patients); diff != "" {
		t.Errorf("patients: %s", diff)
	}
}

func TestElementsOf(t *testing.T) {
	query, err := Parse(values(t, "_type=Patient,Group&_elements=id,Group.name,Group.code"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for typeName, want := range map[string][]string{"Patient": {"id"}, "Group": {"id", "name", "code"}} {
		if diff := cmp.Diff(want, query.ElementsOf(typeName)); diff != "" {
			t.Errorf("%s: %s", typeName, diff)
		}
	}
	query, err = Parse(values(t, "_type=Patient,Group&_elements=Group.name"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"id"}, query.ElementsOf("Patient")); diff != "" {
		t.Errorf("where others are asked for: %s", diff)
	}
}

func TestCommonParameters(t *testing.T) {
	var names []string
	for _, p := range CommonParameters() {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"_id", "_lastUpdated", "_profile", "_security", "_source", "_tag"}, names); diff != "" {
		t.Error(diff)
	}
}
