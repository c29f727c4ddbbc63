package aggregated

import (
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// structures creates schemas of R4's types. The schema of a datatype or backbone element has a
// name, is created once, and is stored in all by its name.
type structures struct {
	ref common.ReferenceCallback
	all map[string]common.OpenAPIDefinition
}

// resource returns the schema of a resource as spec of an object.
func (s structures) resource(name string) (spec.Schema, []string) {
	elements := slices.DeleteFunc(r4.Elements(name), func(e r4.ElementDefinition) bool { return e.Name == "id" })
	return s.object(name, elements)
}

// named returns the name of the schema of a datatype or backbone element, and creates the schema if
// needed.
func (s structures) named(typeName string) string {
	name := r4v1.ModelName(typeName)
	if _, made := s.all[name]; made {
		return name
	}
	s.all[name] = common.OpenAPIDefinition{} // types can be recursive, like Reference and Identifier
	schemaOf := s.datatype
	if typeName == "Extension" {
		schemaOf = s.extension
	}
	schema, dependencies := schemaOf(typeName)
	s.all[name] = common.OpenAPIDefinition{Schema: schema, Dependencies: dependencies}
	return name
}

func (s structures) datatype(typeName string) (spec.Schema, []string) {
	schema, dependencies := s.object(typeName, r4.Elements(typeName))
	schema.Description = describeType(typeName)
	return schema, dependencies
}

// object returns the schema of an object with the elements, and the names of the schemas to which
// that schema refers.
func (s structures) object(typeName string, elements []r4.ElementDefinition) (spec.Schema, []string) {
	schema := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{}}}
	var dependencies []string
	for _, e := range elements {
		value, dependency := s.value(e)
		if e.Repeated {
			value = listOf(value)
		}
		value.Description = describe(typeName, e)
		schema.Properties[e.Name] = value
		if e.Required && !e.Choice() {
			schema.Required = append(schema.Required, e.Name)
		}
		if dependency != "" {
			dependencies = append(dependencies, dependency)
		}
		if e.Companion {
			schema.Properties["_"+e.Name] = s.primitiveExtension(e)
			dependencies = append(dependencies, r4v1.ModelName("Element"))
		}
	}
	slices.Sort(schema.Required)
	slices.Sort(dependencies)
	return schema, slices.Compact(dependencies)
}

// value returns the schema of one value of an element, and the name of the schema to which that
// schema refers, or "".
func (s structures) value(e r4.ElementDefinition) (spec.Schema, string) {
	switch {
	case e.Type == "Resource":
		return open(), ""
	case e.Primitive:
		schema := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{jsonType(e.Type)}}}
		if len(e.Codes) <= maxCodes {
			for _, code := range e.Codes {
				schema.Enum = append(schema.Enum, code)
			}
		}
		return schema, ""
	default:
		name := s.named(e.Type)
		return s.reference(name), name
	}
}

// maxCodes is how many codes a value set may have to be listed as an enum.
const maxCodes = 24

// reference returns a reference without a description of its own.
func (s structures) reference(name string) spec.Schema { return refersTo(name, s.ref, "") }

// listOf returns the schema of an array with a single owner (atomic), because R4's lists are
// ordered and have no keys.
func listOf(item spec.Schema) spec.Schema {
	item.Default = nil
	list := *spec.ArrayProperty(&item)
	list.AddExtension("x-kubernetes-list-type", "atomic")
	return list
}

// primitiveExtension returns the schema of the id and extensions of a primitive value (R4
// json.html#primitive).
func (s structures) primitiveExtension(e r4.ElementDefinition) spec.Schema {
	schema := s.reference(s.named("Element"))
	if e.Repeated {
		schema = listOf(schema)
	}
	schema.Description = "Id and extensions of " + e.Name + "."
	return schema
}

// extension returns an incomplete schema, because an extension can have extensions, or a value of
// nearly any type with extensions of its own.
func (s structures) extension(typeName string) (spec.Schema, []string) {
	var values []string
	elements := slices.DeleteFunc(r4.Elements(typeName), func(e r4.ElementDefinition) bool {
		if e.Choice() {
			values = append(values, e.Name)
		}
		return e.Choice() || e.Name == "extension"
	})
	schema, dependencies := s.object(typeName, elements)
	nested := listOf(open())
	nested.Description = "Extensions of which this one is made up, instead of a value. 0..*, Extension."
	schema.Properties["extension"] = nested
	schema.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	schema.Description = describeType(typeName) + " Its value, if it is not made up of extensions, is one of " + strings.Join(values, ", ") + "."
	return schema, dependencies
}

// jsonType returns the JSON type of a primitive (R4 json.html#primitive).
func jsonType(primitive string) string {
	switch primitive {
	case "boolean":
		return "boolean"
	case "integer", "positiveInt", "unsignedInt":
		return "integer"
	case "decimal":
		return "number"
	default:
		return "string"
	}
}
