package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func element(path string, change func(*elementDefinition)) elementDefinition {
	e := elementDefinition{Path: path, Max: "1", Type: []typeUse{{Code: "string"}}}
	if change != nil {
		change(&e)
	}
	return e
}

func TestTypes(t *testing.T) {
	s := structure{Name: "Animal", Kind: "resource"}
	s.Snapshot.Element = []elementDefinition{
		element("Animal", func(e *elementDefinition) {
			e.Constraint = []invariant{{Key: "ani-1", Severity: "error"}, {Key: "dom-6", Severity: "warning"}}
		}),
		element("Animal.born[x]", func(e *elementDefinition) { e.Type = []typeUse{{Code: "date"}, {Code: "string"}} }),
		element("Animal.leg", func(e *elementDefinition) {
			e.Max, e.Min, e.Type = "*", 1, []typeUse{{Code: "BackboneElement"}}
			e.Constraint = []invariant{{Key: "ele-1", Severity: "error"}}
		}),
		element("Animal.leg.id", func(e *elementDefinition) {
			e.Type = []typeUse{{Code: systemPrefix + "String", Extension: []extension{{URL: fhirType, ValueURL: "string"}}}}
		}),
		element("Animal.leg.colour", func(e *elementDefinition) {
			e.Binding = &binding{Strength: "required", ValueSet: "http://v|1.0"}
		}),
		element("Animal.wing", func(e *elementDefinition) { e.Type, e.ContentReference = nil, "#Animal.leg" }),
		element("Animal.owner", func(e *elementDefinition) {
			e.Type = []typeUse{{Code: "Reference", TargetProfile: []string{structurePrefix + "Person", structurePrefix + "Patient"}}}
		}),
		element("Animal.friend", func(e *elementDefinition) {
			e.Type = []typeUse{{Code: "Reference", TargetProfile: []string{structurePrefix + "Resource"}}}
		}),
	}
	want := []typeRow{
		{name: "Animal", kind: kindResource, constrained: true, elements: []elementRow{
			{name: "bornDate", base: "born", typeName: "date"},
			{name: "bornString", base: "born", typeName: "string"},
			{name: "leg", base: "leg", ord: 1, typeName: "Animal.leg", many: true, required: true},
			{name: "wing", base: "wing", ord: 2, typeName: "Animal.leg"},
			{name: "owner", base: "owner", ord: 3, typeName: "Reference", references: []string{"Patient", "Person"}},
			{name: "friend", base: "friend", ord: 4, typeName: "Reference"},
		}},
		{name: "Animal.leg", kind: kindComponent, elements: []elementRow{
			{name: "id", base: "id", typeName: "string", plain: true},
			{name: "colour", base: "colour", ord: 1, typeName: "string", valueSet: "http://v"},
		}},
	}
	got, err := s.types()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(typeRow{}, elementRow{})); diff != "" {
		t.Error(diff)
	}
}

// TestTypesFail makes sure that what the reader does not provide for stops the
// generator.
func TestTypesFail(t *testing.T) {
	for name, change := range map[string]func(*elementDefinition){
		"two at least":    func(e *elementDefinition) { e.Min, e.Max = 2, "*" },
		"three at most":   func(e *elementDefinition) { e.Max = "3" },
		"several types":   func(e *elementDefinition) { e.Type = []typeUse{{Code: "a"}, {Code: "b"}} },
		"another profile": func(e *elementDefinition) { e.Type = []typeUse{{Code: "Quantity", Profile: []string{"http://p"}}} },
		"another target": func(e *elementDefinition) {
			e.Type = []typeUse{{Code: "Reference", TargetProfile: []string{"http://p"}}}
		},
	} {
		s := structure{Name: "Animal", Kind: "resource"}
		s.Snapshot.Element = []elementDefinition{element("Animal", nil), element("Animal.x", change)}
		if _, err := s.types(); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestExpand(t *testing.T) {
	d := &definitions{
		valueSets: map[string]valueSet{},
		codeSystems: map[string]codeSystem{
			"s":    {URL: "s", Content: "complete", Concept: []concept{{Code: "b", Concept: []concept{{Code: "c"}}}, {Code: "a"}}},
			"part": {URL: "part", Content: "fragment"},
		},
	}
	add := func(url string, includes ...include) {
		v := valueSet{URL: url}
		v.Compose.Include = includes
		d.valueSets[url] = v
	}
	add("whole", include{System: "s"})
	add("listed", include{System: "x", Concept: []concept{{Code: "z"}, {Code: "y"}}})
	add("in part", include{System: "part"})
	add("nested", include{ValueSet: []string{"whole"}})
	want := map[string][]codes{"whole": {{"s", []string{"a", "b", "c"}}}, "listed": {{"x", []string{"y", "z"}}}}
	for _, url := range []string{"whole", "listed", "in part", "nested", "unknown"} {
		got, err := d.expandOne(url)
		if want[url] == nil {
			if err == nil {
				t.Errorf("%s was expanded", url)
			}
			continue
		}
		if diff := cmp.Diff(want[url], got.systems, cmp.AllowUnexported(codes{})); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", url, err, diff)
		}
	}
	if currencies := currencyCodes(); len(currencies) < 150 {
		t.Errorf("there are %d currencies", len(currencies))
	}
}
