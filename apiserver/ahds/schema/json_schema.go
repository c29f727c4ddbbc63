package schema

import (
	"maps"
	"strings"
)

// Schema returns the JSON Schema of objects with the fields, as clients may send them. Fields that
// the service sets may have any value, because it is ignored.
func (f Fields) Schema() JSON {
	properties := JSON{}
	required := []string{}
	for _, field := range f {
		switch {
		case field.Served:
			properties[field.Name] = JSON{"description": "Set by the service. A value in a request is ignored."}
		case field.Required:
			properties[field.Name] = field.Check.Schema
			required = append(required, field.Name)
		default:
			properties[field.Name] = field.Check.Schema.OrNull()
		}
	}
	return JSON{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// OrNull returns the schema of null and the values of another schema.
func (s JSON) OrNull() JSON {
	kind, simple := s["type"].(string)
	if _, listed := s["enum"]; listed || !simple {
		return JSON{"anyOf": []any{s, JSON{"type": "null"}}}
	}
	with := maps.Clone(s)
	with["type"] = []string{kind, "null"}
	return with
}

// CommaSeparated returns the schema of one or several words of a list, separated by commas.
func CommaSeparated(words []string) JSON {
	one := "(" + strings.Join(words, "|") + ")"
	return JSON{"type": "string", "pattern": "^" + one + "(," + one + ")*$"}
}
