package r4

import "slices"

// Compartment defines which records belong to a record such as a Patient, the owner of the
// compartment. R4 compartmentdefinition.html.
type Compartment struct {
	// Type is the type of the owner.
	Type string
	// Definition is the canonical URL of HL7's CompartmentDefinition.
	Definition string
	// Members are the types that have records in the compartment, sorted by name.
	Members []Membership
}

// Membership defines which records of a type are in a compartment: those that refer to the owner by
// one of the search parameters Params.
type Membership struct {
	Type   string
	Params []string
	// Self is set if the owner itself is in the compartment too. The owner then has the type Type.
	Self bool
}

// CompartmentOf returns the compartment of records of a type. It returns false if records of that
// type have no compartment.
func CompartmentOf(typeName string) (Compartment, bool) {
	at := slices.IndexFunc(Compartments, func(c Compartment) bool { return c.Type == typeName })
	if at < 0 {
		return Compartment{}, false
	}
	return Compartments[at], true
}

// devicesOfPatient makes Patient/{id}/Device a valid compartment search. R4's definition does not
// include Devices, but the contract counts Devices that are linked to a patient among the patient's
// data (contract 1). This membership is not in Members, so that a search of the whole compartment
// finds only what R4 defines.
var devicesOfPatient = Membership{Type: "Device", Params: []string{"patient"}}

// Member returns the membership of a type that a search in the compartment may name. In addition to
// Members, this is Device for a Patient. Member returns false for all other types.
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

// Types returns the types that have records in the compartment, sorted by name.
func (c Compartment) Types() []string {
	types := make([]string, len(c.Members))
	for i, m := range c.Members {
		types[i] = m.Type
	}
	return types
}
