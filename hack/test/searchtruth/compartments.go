package searchtruth

import (
	"encoding/json"
	"slices"
	"strings"
)

// Compartment has the members of a compartment: for each type, the parameters that refer to the record
// that owns the compartment. The entry Self instead of a parameter means that the owner itself is a
// member.
type Compartment map[string][]string

// Self stands for the record that owns a compartment.
const Self = "{def}"

// addCompartment adds the compartment of one of HL7's definitions. It ignores examples, and
// compartments of types that the server does not keep.
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
