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
		"an extension":            {expression: "Patient.extension('u')", fails: true},
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
