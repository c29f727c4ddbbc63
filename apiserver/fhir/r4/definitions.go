package r4

import "slices"

// ElementDefinition describes an element of a type under one of its JSON names, for schemas and
// documentation.
type ElementDefinition struct {
	// Name is the name of the JSON member, such as deceasedBoolean. Base is the name of the element,
	// such as deceased.
	Name, Base string
	// Type is the type of a value, such as boolean, HumanName or Patient.contact. Resource stands for
	// a resource of any type.
	Type string
	// Primitive is set if values are not objects. Companion is set if the element may also have a
	// primitive extension, as _birthDate for birthDate.
	Primitive, Companion bool
	// Required is set if the element must be present. Repeated is set if its value is an array.
	Required, Repeated bool
	// Codes are the valid codes of an element of type code. It is nil for other elements, and for an
	// element without a required binding to a value set whose codes can be enumerated.
	Codes []string
	// Targets are the types that an element of type Reference may refer to. nil means all types.
	Targets []string
}

// Choice reports whether the element is a choice, whose JSON name contains a type.
func (e ElementDefinition) Choice() bool { return e.Name != e.Base }

// Elements returns the elements of a type in FHIR's order. The result is empty for a primitive type
// and for a type that R4 does not have.
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
