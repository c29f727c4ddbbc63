package r4

import "slices"

// Compartment is the records that belong to one record, such as a Patient. R4
// compartmentdefinition.html.
type Compartment struct {
	// Type is that of the record that the compartment is of.
	Type string
	// Definition is the canonical URL of HL7's CompartmentDefinition.
	Definition string
	// Members are the types that have records in it, by name.
	Members []Membership
}

// Membership says which records of a type are in a compartment: those that refer by one of the
// parameters to the record that it is of.
type Membership struct {
	Type   string
	Params []string
	// Self is set where the record that the compartment is of is in it too.
	Self bool
}

// CompartmentOf finds the compartment that records of a type have.
func CompartmentOf(typeName string) (Compartment, bool) {
	at := slices.IndexFunc(Compartments, func(c Compartment) bool { return c.Type == typeName })
	if at < 0 {
		return Compartment{}, false
	}
	return Compartments[at], true
}

// Member finds the membership of a type.
func (c Compartment) Member(typeName string) (Membership, bool) {
	at := slices.IndexFunc(c.Members, func(m Membership) bool { return m.Type == typeName })
	if at < 0 {
		return Membership{}, false
	}
	return c.Members[at], true
}

// Types are the types that have records in the compartment, by name.
func (c Compartment) Types() []string {
	types := make([]string, len(c.Members))
	for i, m := range c.Members {
		types[i] = m.Type
	}
	return types
}
