package openapi

import (
	"reflect"
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
)

// schemaOfGo returns the schema of the JSON of a Go type: a string, a bool, a slice or a struct of
// these, whose fields must all have a name for JSON. So the document describes each field that a
// response can have. Fields without omitempty are required. It panics for other kinds.
func schemaOfGo(t reflect.Type) schema.JSON {
	switch t.Kind() {
	case reflect.String:
		return schema.JSON{"type": "string"}
	case reflect.Bool:
		return schema.JSON{"type": "boolean"}
	case reflect.Slice:
		return schema.JSON{"type": "array", "items": schemaOfGo(t.Elem())}
	case reflect.Struct:
		return schemaOfStruct(t)
	default:
		panic("apiserver/openapi: no schema of " + t.String())
	}
}

func schemaOfStruct(t reflect.Type) schema.JSON {
	properties, required := schema.JSON{}, []string{}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if options != "omitempty" {
			required = append(required, name)
		}
		properties[name] = schemaOfGo(field.Type)
	}
	return schema.JSON{"type": "object", "required": required, "properties": properties, "additionalProperties": false}
}
