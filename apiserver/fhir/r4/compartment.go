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

// devicesOfPatient lets a search name the Devices of a Patient as a part of its compartment. R4's
// definition has none, but the contract counts Devices that are linked to a patient among the
// patient's data (1), and clients ask for Patient/{id}/Device. It is not in Members, so a search
// of the whole compartment finds what R4 lists and nothing else.
var devicesOfPatient = Membership{Type: "Device", Params: []string{"patient"}}

// Member returns the membership of a type that a search may name.
func (c Compartment) Member(typeName string) (Membership, bool) {
	if c.Type == "Patient" && typeName == devicesOfPatient.Type {
		return devicesOfPatient, true
	}
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
