package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/paddock-health/paddock/hack/dev/examples"
)

// definitions are the parts of HL7's package from which the tables are made.
type definitions struct {
	structures   map[string]structure // by name
	valueSets    map[string]valueSet  // by url
	codeSystems  map[string]codeSystem
	parameters   []searchParameter
	compartments []compartmentDefinition
}

type structure struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Derivation string `json:"derivation"`
	Abstract   bool   `json:"abstract"`
	Snapshot   struct {
		Element []elementDefinition `json:"element"`
	} `json:"snapshot"`
}

type elementDefinition struct {
	Path             string      `json:"path"`
	Min              int         `json:"min"`
	Max              string      `json:"max"`
	Type             []typeUse   `json:"type"`
	ContentReference string      `json:"contentReference"`
	Binding          *binding    `json:"binding"`
	IsSummary        bool        `json:"isSummary"`
	IsModifier       bool        `json:"isModifier"`
	Constraint       []invariant `json:"constraint"`
}

type typeUse struct {
	Code          string      `json:"code"`
	Profile       []string    `json:"profile"`
	TargetProfile []string    `json:"targetProfile"`
	Extension     []extension `json:"extension"`
}

type extension struct {
	URL            string `json:"url"`
	ValueURL       string `json:"valueUrl"`
	ValueCanonical string `json:"valueCanonical"`
}

type binding struct {
	Strength  string      `json:"strength"`
	ValueSet  string      `json:"valueSet"`
	Extension []extension `json:"extension"`
}

type invariant struct {
	Key        string `json:"key"`
	Severity   string `json:"severity"`
	Human      string `json:"human"`
	Expression string `json:"expression"`
}

type valueSet struct {
	URL     string `json:"url"`
	Compose struct {
		Include []include `json:"include"`
		Exclude []include `json:"exclude"`
	} `json:"compose"`
}

type include struct {
	System   string            `json:"system"`
	Concept  []concept         `json:"concept"`
	Filter   []json.RawMessage `json:"filter"`
	ValueSet []string          `json:"valueSet"`
}

type codeSystem struct {
	URL     string    `json:"url"`
	Content string    `json:"content"`
	Concept []concept `json:"concept"`
}

type concept struct {
	Code    string    `json:"code"`
	Concept []concept `json:"concept"`
}

type searchParameter struct {
	ID         string      `json:"id"`
	Code       string      `json:"code"`
	Base       []string    `json:"base"`
	Type       string      `json:"type"`
	Expression string      `json:"expression"`
	Target     []string    `json:"target"`
	Component  []component `json:"component"`
	// added is set for a parameter of additions.
	added bool
}

type component struct {
	Definition string `json:"definition"`
	Expression string `json:"expression"`
}

type compartmentDefinition struct {
	URL      string                `json:"url"`
	Code     string                `json:"code"`
	Search   bool                  `json:"search"`
	Resource []compartmentResource `json:"resource"`
}

type compartmentResource struct {
	Code  string   `json:"code"`
	Param []string `json:"param"`
}

// additions is the name of the file with search parameters that R4 does not define, in the folder of
// the tables. The parameters have the form of HL7's definitions, with an id only if HL7 has a
// definition.
const additions = "search_additions.json"

// load reads the definitions out of the package at path, and the additions in folder.
func load(path, folder string) (*definitions, error) {
	d := &definitions{
		structures:  map[string]structure{},
		valueSets:   map[string]valueSet{},
		codeSystems: map[string]codeSystem{},
	}
	err := examples.Walk(path, d.add)
	if err != nil {
		return nil, err
	}
	if len(d.structures) == 0 || len(d.parameters) == 0 {
		return nil, fmt.Errorf("%s has %d structure definitions and %d search parameters, want some of both", path, len(d.structures), len(d.parameters))
	}
	return d, d.addAdditions(filepath.Join(folder, additions))
}

func (d *definitions) addAdditions(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var added []searchParameter
	if err := json.Unmarshal(text, &added); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range added {
		if len(p.Base) != 1 || !kept[p.Base[0]] {
			return fmt.Errorf("%s: the base of %s is %v; give one supported type", path, p.Code, p.Base)
		}
		p.added = true
		d.parameters = append(d.parameters, p)
	}
	return nil
}

// add parses a file of the package and adds its definition. It ignores files of other kinds.
func (d *definitions) add(name string, text []byte) error {
	kind, _, _ := strings.Cut(name, "-")
	switch kind {
	case "StructureDefinition":
		var s structure
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		// Profiles and logical models are not types that instances have.
		if s.Derivation != "constraint" && s.Kind != "logical" {
			d.structures[s.Name] = s
		}
	case "ValueSet":
		return addTo(d.valueSets, text, func(v valueSet) string { return v.URL })
	case "CodeSystem":
		return addTo(d.codeSystems, text, func(c codeSystem) string { return c.URL })
	case "SearchParameter":
		var p searchParameter
		if err := json.Unmarshal(text, &p); err != nil {
			return err
		}
		d.parameters = append(d.parameters, p)
	case "CompartmentDefinition":
		var c compartmentDefinition
		if err := json.Unmarshal(text, &c); err != nil {
			return err
		}
		d.compartments = append(d.compartments, c)
	}
	return nil
}

func addTo[T any](all map[string]T, text []byte, key func(T) string) error {
	var one T
	if err := json.Unmarshal(text, &one); err != nil {
		return err
	}
	all[key(one)] = one
	return nil
}
