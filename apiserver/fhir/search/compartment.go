package search

import (
	"fmt"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Compartment restricts a search to what is in the compartment of one record.
type Compartment struct {
	r4.Compartment
	// ID is that of the record.
	ID string
}

// condition returns what the members of a type meet: they refer to the record by one of the
// parameters that the definition lists, or are the record. R4 compartmentdefinition.html#use.
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

// restrict restricts the query to the members of a compartment.
func (p *parser) restrict(c *Compartment) error {
	p.query.ByType = map[string]store.Condition{}
	for _, typeName := range p.query.Types {
		m, ok := c.Member(typeName)
		if !ok {
			return fmt.Errorf("%s is not in the compartment of a %s; there is %s", typeName, c.Type, strings.Join(c.Types(), ", "))
		}
		p.query.ByType[typeName] = c.condition(m)
	}
	return nil
}

// ReferenceParameters lists the parameters by which records of a type refer to those of another.
func ReferenceParameters(from, to string) []string { return referencesFrom(from, []string{to}) }
