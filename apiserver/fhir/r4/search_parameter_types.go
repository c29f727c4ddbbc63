package r4

import "slices"

// Types returns the FHIR types of the values of a parameter, such as CodeableConcept, sorted.
func (p *SearchParameter) Types() []string {
	base := p.base
	if base == typeResource { // every resource type has these elements
		base = typePatient
	}
	var names []string
	for i := range p.paths {
		path := &p.paths[i]
		if path.truth {
			names = append(names, types[typeBoolean].name)
			continue
		}
		names = appendTypesAt(names, base, path.steps, path.as)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// appendTypesAt appends the types of the elements to which steps lead from type typ. Of a choice, it
// appends the type in as only, unless as is 0.
func appendTypesAt(names []string, typ typeIndex, steps []string, as typeIndex) []string {
	if len(steps) == 0 {
		return append(names, types[typ].name)
	}
	for i := range types[typ].elements {
		e := &types[typ].elements[i]
		if e.base() == steps[0] && (as == 0 || !e.isChoice() || e.typ == as) {
			names = appendTypesAt(names, e.typ, steps[1:], as)
		}
	}
	return names
}

// Definition returns the canonical URL of HL7's definition of the parameter, and "" if there is
// none.
func (p *SearchParameter) Definition() string {
	if p.definition == "" {
		return ""
	}
	return "http://hl7.org/fhir/SearchParameter/" + p.definition
}

// References returns the types that values of a reference parameter may refer to: those of Targets,
// and those that the definitions of the selected elements allow in addition.
func (p *SearchParameter) References() []string {
	all := p.Targets()
	for i := range p.paths {
		path := &p.paths[i]
		if path.refersTo != 0 {
			continue // Targets has its type
		}
		for _, typ := range targetsAt(p.base, path.steps) {
			all = append(all, types[typ].name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// targetsAt returns the allowed target types of the Reference to which steps lead from type typ.
func targetsAt(typ typeIndex, steps []string) []typeIndex {
	for i := range types[typ].elements {
		switch e := &types[typ].elements[i]; {
		case e.base() != steps[0]:
		case len(steps) == 1 && e.typ == typeReference:
			return targetSets[e.targets]
		case len(steps) > 1:
			return targetsAt(e.typ, steps[1:])
		}
	}
	return nil
}
