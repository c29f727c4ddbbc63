package searchtruth

import (
	"encoding/json"
	"slices"
	"strings"
)

// Compartment is what is in a compartment: the parameters that lead to it, by type. Instead of a
// parameter there is Self for the record that the compartment is of.
type Compartment map[string][]string

// Self stands for the record that a compartment is of.
const Self = "{def}"

// addCompartment takes one of HL7's definitions, if records of the types kept have it.
func addCompartment(compartments map[string]Compartment, name string, text []byte) error {
	var definition struct {
		Code     string
		Resource []struct {
			Code  string
			Param []string
		}
	}
	if err := json.Unmarshal(text, &definition); err != nil {
		return err
	}
	isExample := !strings.EqualFold(name, "CompartmentDefinition-"+definition.Code+".json")
	if isExample || !slices.Contains(Kept, definition.Code) {
		return nil
	}
	members := Compartment{}
	for _, resource := range definition.Resource {
		if slices.Contains(Kept, resource.Code) && len(resource.Param) > 0 {
			members[resource.Code] = resource.Param
		}
	}
	compartments[definition.Code] = members
	return nil
}
