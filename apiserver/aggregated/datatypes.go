package aggregated

import (
	"cmp"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The datatypes of R4 that cells print, with their texts: datatypes.html.

// primitive is the text of a value of any primitive type.
type primitive string

// UnmarshalJSON accepts strings, numbers, booleans and null. In lists null stands for a value with
// only extensions.
func (p *primitive) UnmarshalJSON(text []byte) error {
	switch value := jsontext.Value(text); value.Kind() {
	case jsontext.KindNull:
		return nil
	case jsontext.KindString:
		return jsonv2.Unmarshal(text, (*string)(p))
	case jsontext.KindNumber, jsontext.KindTrue, jsontext.KindFalse:
		*p = primitive(value)
		return nil
	default:
		return jsonv2.Unmarshal(text, new(string))
	}
}

func (p primitive) String() string { return string(p) }

type coding struct {
	Code    primitive `json:"code"`
	Display primitive `json:"display"`
}

// String returns the display text, or else the code.
func (c coding) String() string { return string(cmp.Or(c.Display, c.Code)) }

type codeableConcept struct {
	Text   primitive `json:"text"`
	Coding []coding  `json:"coding"`
}

// String returns the text of a concept, or else that of its first coding.
func (c codeableConcept) String() string {
	if c.Text != "" || len(c.Coding) == 0 {
		return string(c.Text)
	}
	return c.Coding[0].String()
}

type reference struct {
	Reference  primitive  `json:"reference"`
	Display    primitive  `json:"display"`
	Identifier identifier `json:"identifier"`
}

// String returns the display text of the target, or else the reference, or else the value of the
// identifier.
func (r reference) String() string {
	return string(cmp.Or(r.Display, r.Reference, r.Identifier.Value))
}

type identifier struct {
	Value primitive `json:"value"`
}

func (i identifier) String() string { return string(i.Value) }

type humanName struct {
	Use    primitive   `json:"use"`
	Text   primitive   `json:"text"`
	Family primitive   `json:"family"`
	Given  []primitive `json:"given"`
}

// String returns the name in one line: its text, or else the given and family names.
func (n humanName) String() string {
	if n.Text != "" {
		return strings.Join(strings.Fields(string(n.Text)), " ")
	}
	var parts []string
	for _, part := range append(slices.Clone(n.Given), n.Family) {
		if part != "" {
			parts = append(parts, string(part))
		}
	}
	return strings.Join(parts, " ")
}

// humanNameOf returns the official name, or else the first name.
func humanNameOf(resource elements) humanName {
	all := read[[]humanName](resource["name"])
	if i := slices.IndexFunc(all, func(n humanName) bool { return n.Use == "official" }); i >= 0 {
		return all[i]
	}
	if len(all) == 0 {
		return humanName{}
	}
	return all[0]
}

// personName prints the whole name.
func personName(resource elements) string { return humanNameOf(resource).String() }

func family(resource elements) string { return string(humanNameOf(resource).Family) }

// given prints the given names, or the text of a name without parts.
func given(resource elements) string {
	shown := humanNameOf(resource)
	var parts []string
	for _, part := range shown.Given {
		if part != "" {
			parts = append(parts, string(part))
		}
	}
	if shown.Family == "" && len(parts) == 0 {
		return string(shown.Text)
	}
	return strings.Join(parts, " ")
}

type contactPoint struct {
	System primitive `json:"system"`
	Value  primitive `json:"value"`
	Use    primitive `json:"use"`
}

// contact prints the first contact point of a system that has a value and whose use is not old.
func contact(system primitive) cell {
	return func(resource elements) string {
		for _, point := range read[[]contactPoint](resource["telecom"]) {
			if point.System == system && point.Use != "old" && point.Value != "" {
				return string(point.Value)
			}
		}
		return ""
	}
}

type address struct {
	Text    primitive   `json:"text"`
	Line    []primitive `json:"line"`
	City    primitive   `json:"city"`
	State   primitive   `json:"state"`
	Code    primitive   `json:"postalCode"`
	Country primitive   `json:"country"`
}

// String returns the address in one line.
func (a address) String() string {
	if a.Text != "" {
		return strings.Join(strings.Fields(string(a.Text)), " ")
	}
	var parts []string
	for _, part := range append(a.Line, a.City, a.State, a.Code, a.Country) {
		if part != "" {
			parts = append(parts, string(part))
		}
	}
	return strings.Join(parts, ", ")
}

// city is an address that is printed as its city.
type city struct {
	City primitive `json:"city"`
}

func (c city) String() string { return string(c.City) }

type period struct {
	Start primitive `json:"start"`
	End   primitive `json:"end"`
}

// String returns the interval in ISO 8601, with .. for an open end.
func (p period) String() string {
	if p.Start == "" && p.End == "" {
		return ""
	}
	return string(cmp.Or(p.Start, "..") + "/" + cmp.Or(p.End, ".."))
}
