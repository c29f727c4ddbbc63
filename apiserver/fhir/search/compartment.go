package search

import (
	"fmt"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Compartment is the compartment of one record, its owner.
type Compartment struct {
	r4.Compartment
	// ID is the id of the owner.
	ID string
}

// condition returns the condition that members of a type meet: they refer to the owner by one of
// the parameters in m or, if m.Self is set, are the owner. R4 compartmentdefinition.html#use.
func (c *Compartment) condition(m r4.Membership) store.Condition {
	id := strings.ToLower(c.ID)
	var either store.Any
	if m.Self {
		either = append(either, store.IDIn{id})
	}
	for _, param := range m.Params {
		either = append(either, store.RefersTo{Param: param, To: store.Reference{Type: c.Type, ID: id}})
	}
	if len(either) == 1 {
		return either[0]
	}
	return either
}

// InCompartment returns the condition that the records of type typeName in a compartment meet. The
// owner of the compartment is the record whose type and id are the first two arguments.
// InCompartment returns false if that type has no compartments in R4, or if its compartments have
// no records of type typeName.
func InCompartment(of, id, typeName string) (store.Condition, bool) {
	definition, ok := r4.CompartmentOf(of)
	if !ok {
		return nil, false
	}
	m, ok := definition.Member(typeName)
	if !ok {
		return nil, false
	}
	c := Compartment{Compartment: definition, ID: id}
	return c.condition(m), true
}

// restrictTo restricts the query to the members of a compartment.
func (p *parser) restrictTo(c *Compartment) error {
	p.query.ByType = map[string]store.Condition{}
	for _, typeName := range p.query.Types {
		m, ok := c.Member(typeName)
		if !ok {
			return fmt.Errorf("%s is not in the compartment of a %s; give one or more of %s", typeName, c.Type, strings.Join(c.Types(), ", "))
		}
		p.query.ByType[typeName] = c.condition(m)
	}
	return nil
}

// ReferenceParameters returns the reference parameters of one type, named by from, that can refer
// to another type, named by to.
func ReferenceParameters(from, to string) []string { return referencesFrom(from, []string{to}) }
