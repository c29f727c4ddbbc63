package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const compartmentPrefix = "http://hl7.org/fhir/CompartmentDefinition/"

// self is what R4 writes in place of a parameter: the record that owns the compartment is a member
// itself.
const self = "{def}"

// compartment is one of R4's compartments. members has only types that the server keeps.
type compartment struct {
	url, code string
	members   []membership
}

// membership says which records of a type are in a compartment.
type membership struct {
	code   string
	params []string
	self   bool
}

// compartmentsOf returns the compartments of the types that the server keeps, sorted by type. It
// leaves out compartments without members among these types. A parameter that does not refer to the
// owner is an error.
func (d *definitions) compartmentsOf(programs []searchProgram) ([]compartment, error) {
	var all []compartment
	for _, definition := range d.compartments {
		if !definition.isStandard() || !kept[definition.Code] {
			continue
		}
		c := compartment{url: definition.URL, code: definition.Code}
		for _, resource := range definition.Resource {
			if len(resource.Param) == 0 || !kept[resource.Code] {
				continue
			}
			m, err := resource.membership(definition.Code, programs)
			if err != nil {
				return nil, fmt.Errorf("compartment %s: %w", definition.Code, err)
			}
			c.members = append(c.members, m)
		}
		if len(c.members) == 0 {
			continue
		}
		slices.SortFunc(c.members, func(a, b membership) int { return cmp.Compare(a.code, b.code) })
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b compartment) int { return cmp.Compare(a.code, b.code) })
	return all, nil
}

// isStandard reports whether the definition is one of R4's own. The package also has an example of a
// definition.
func (d compartmentDefinition) isStandard() bool {
	name, ok := strings.CutPrefix(d.URL, compartmentPrefix)
	return ok && d.Search && strings.EqualFold(name, d.Code)
}

func (r compartmentResource) membership(of string, programs []searchProgram) (membership, error) {
	m := membership{code: r.Code}
	for _, param := range r.Param {
		if param == self && r.Code == of {
			m.self = true
			continue
		}
		refers := slices.ContainsFunc(programs, func(p searchProgram) bool {
			return p.base == r.Code && p.code == param && p.kind == "reference" && slices.Contains(p.targets, of)
		})
		if !refers {
			return m, fmt.Errorf("search parameter %s of %s does not refer to %s", param, r.Code, of)
		}
		m.params = append(m.params, param)
	}
	slices.Sort(m.params)
	return m, nil
}

func writeCompartments(b *bytes.Buffer, compartments []compartment) {
	b.WriteString("// Compartments are the compartments of R4 whose owner has a supported type, sorted by type.\nvar Compartments = []Compartment{\n")
	for _, c := range compartments {
		fmt.Fprintf(b, "{Type: %q, Definition: %q, Members: []Membership{\n", c.code, c.url)
		for _, m := range c.members {
			fmt.Fprintf(b, "{Type: %q", m.code)
			if len(m.params) > 0 {
				fmt.Fprintf(b, ", Params: []string{%s}", quoteAll(m.params))
			}
			if m.self {
				b.WriteString(", Self: true")
			}
			b.WriteString("},\n")
		}
		b.WriteString("}},\n")
	}
	b.WriteString("}\n")
}
