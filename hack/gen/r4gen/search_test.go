package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePath(t *testing.T) {
	tests := map[string]struct {
		expression string
		want       searchPath
		own        bool
		fails      bool
	}{
		"a path":                  {expression: "Patient.name.given", want: searchPath{steps: []string{"name", "given"}}, own: true},
		"of another type":         {expression: "Person.name", want: searchPath{steps: []string{"name"}}},
		"a condition":             {expression: "Patient.telecom.where(system='phone')", want: searchPath{steps: []string{"telecom"}, where: "system", is: "phone"}, own: true},
		"what is referred to":     {expression: "Patient.link.where(resolve() is Person)", want: searchPath{steps: []string{"link"}, refersTo: "Person"}, own: true},
		"a choice":                {expression: "(Patient.deceased as dateTime)", want: searchPath{steps: []string{"deceased"}, as: "dateTime"}, own: true},
		"a choice, as a function": {expression: "Patient.deceased.as(dateTime)", want: searchPath{steps: []string{"deceased"}, as: "dateTime"}, own: true},
		"whether there is one":    {expression: "Patient.deceased.exists() and Patient.deceased != false", want: searchPath{steps: []string{"deceased"}, truth: true}, own: true},
		"two different ones":      {expression: "Patient.deceased.exists() and Patient.active != false", fails: true},
		"the resource":            {expression: "Patient", own: true},
		"a function":              {expression: "Patient.name.first()", fails: true},
		"in extensions": {
			expression: "Patient.extension('http://a/b').extension('c').value.ofType(string)",
			want:       searchPath{steps: []string{"extension", "extension", "value"}, as: "string", urls: []string{"http://a/b", "c"}}, own: true,
		},
		"an extension as a whole": {expression: "Patient.extension('u')", fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, own, err := parsePath(test.expression, "Patient")
			if (err != nil) != test.fails {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(searchPath{})); diff != "" || own != test.own {
				t.Errorf("own %v\n%s", own, diff)
			}
		})
	}
}

func TestFindsOne(t *testing.T) {
	element := func(name, typeName string, many bool) elementRow {
		return elementRow{name: name, base: name, typeName: typeName, many: many}
	}
	rows := []typeRow{
		{name: "Patient", elements: []elementRow{
			element("birthDate", "date", false), element("name", "HumanName", true), element("meta", "Meta", false), element("link", "Patient.link", true),
			{name: "deceasedBoolean", base: "deceased", typeName: "boolean"},
			{name: "deceasedDateTime", base: "deceased", typeName: "dateTime"},
		}},
		{name: "HumanName", elements: []elementRow{element("period", "Period", false)}},
		{name: "Patient.link", elements: []elementRow{element("since", "date", false)}},
		{name: "Meta", elements: []elementRow{element("lastUpdated", "instant", false), element("tag", "Coding", true)}},
	}
	path := func(steps ...string) searchPath { return searchPath{steps: steps} }
	for name, test := range map[string]struct {
		base  string
		paths []searchPath
		want  bool
	}{
		"an element":               {"Patient", []searchPath{path("birthDate")}, true},
		"one that repeats":         {"Patient", []searchPath{path("name")}, false},
		"in one that repeats":      {"Patient", []searchPath{path("name", "period")}, false},
		"in a component":           {"Patient", []searchPath{path("link", "since")}, false},
		"in one that does not":     {"Patient", []searchPath{path("meta", "lastUpdated")}, true},
		"that repeats in it":       {"Patient", []searchPath{path("meta", "tag")}, false},
		"of all resources":         {anyResource, []searchPath{path("meta", "lastUpdated")}, true},
		"a type of a choice":       {"Patient", []searchPath{{steps: []string{"deceased"}, as: "dateTime"}}, true},
		"all types of a choice":    {"Patient", []searchPath{{steps: []string{"deceased"}, as: "dateTime"}, {steps: []string{"deceased"}, as: "boolean"}}, true},
		"two elements":             {"Patient", []searchPath{path("birthDate"), {steps: []string{"deceased"}, as: "dateTime"}}, false},
		"what leads nowhere":       {"Patient", []searchPath{path("birthdate")}, false},
		"one of those that repeat": {"Patient", []searchPath{{steps: []string{"name"}, where: "use", is: "official"}}, false},
	} {
		if got := (searchProgram{base: test.base, paths: test.paths}).findsOne(rows); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestCompileFails(t *testing.T) {
	rows := []typeRow{{name: "Patient", kind: kindResource, elements: []elementRow{{name: "name", base: "name", typeName: "HumanName"}}}}
	for name, p := range map[string]searchParameter{
		"no such element":   {Expression: "Patient.names"},
		"of no type kept":   {Expression: "Animal.name"},
		"unknown component": {Expression: "Patient.name", Component: []component{{Definition: "u", Expression: "given"}}},
	} {
		if _, err := p.compile("Patient", rows, nil); err == nil {
			t.Errorf("%s: compiled", name)
		}
	}
}
