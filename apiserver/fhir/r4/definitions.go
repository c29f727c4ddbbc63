package r4

import "slices"

// ElementDefinition is an element of a type, in one of its JSON spellings: for those
// who describe bodies instead of reading them.
type ElementDefinition struct {
	// Name is the JSON member's, such as deceasedBoolean; Base the element's, deceased.
	Name, Base string
	// Type is that of a value: boolean, HumanName, Patient.contact; Resource for a
	// resource of any type.
	Type string
	// Primitive values are no objects. Those with a Companion may have an id and
	// extensions beside them, as _birthDate for birthDate.
	Primitive, Companion bool
	// Required elements are there at least once, Repeated ones are arrays.
	Required, Repeated bool
	// Codes are those that a code must be one of; nil: no list can hold them.
	Codes []string
	// Targets are the types that a reference may refer to; nil: any.
	Targets []string
}

// Choice reports whether the element has a type in its name.
func (e ElementDefinition) Choice() bool { return e.Name != e.Base }

// Elements returns the elements of a type in FHIR's order; none of a primitive one
// and of one that R4 does not have.
func Elements(typeName string) []ElementDefinition {
	at := slices.IndexFunc(types[:], func(t typeDef) bool { return t.name == typeName })
	if at < 0 {
		return nil
	}
	all := make([]ElementDefinition, 0, len(types[at].elements))
	for i := range types[at].elements {
		e := &types[at].elements[i]
		all = append(all, ElementDefinition{
			Name: e.name, Base: e.base(), Type: types[e.typ].name,
			Primitive: e.typ.isPrimitive(), Companion: e.typ.isPrimitive() && e.is&plain == 0,
			Required: types[at].required&e.bit() != 0, Repeated: e.isMany(),
			Codes: codesOf(e), Targets: targetsOf(e),
		})
	}
	return all
}

func codesOf(e *element) []string {
	if e.codes == 0 || e.typ != typeCode {
		return nil
	}
	codings, _ := valueSets[e.codes].codings()
	var codes []string
	for _, coding := range codings {
		if !slices.Contains(codes, coding.Code) {
			codes = append(codes, coding.Code)
		}
	}
	return codes
}

func targetsOf(e *element) []string {
	var names []string
	for _, target := range targetSets[e.targets] {
		names = append(names, types[target].name)
	}
	return names
}
