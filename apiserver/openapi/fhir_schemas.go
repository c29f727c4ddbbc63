package openapi

import (
	"reflect"
	"slices"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/fhir"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// maxCodes is the maximum number of codes of a value set that a schema lists. An element with more
// codes has the schema of any code.
const maxCodes = 100

// primitives are the JSON Schemas of FHIR's primitive types. R4 datatypes.html#primitive.
var primitives = map[string]schema.JSON{
	"base64Binary": {"type": "string", "contentEncoding": "base64"},
	"boolean":      {"type": "boolean"},
	"canonical":    {"type": "string", "pattern": `^\S+$`},
	"code":         {"type": "string", "pattern": `^[^\s]+( [^\s]+)*$`},
	"date":         {"type": "string", "pattern": `^[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?$`},
	"dateTime":     {"type": "string", "pattern": `^[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?(Z|[+-]((0[0-9]|1[0-3]):[0-5][0-9]|14:00)))?)?)?$`},
	"decimal":      {"type": "number"},
	"id":           {"type": "string", "pattern": `^[A-Za-z0-9.-]{1,64}$`},
	"instant":      {"type": "string", "pattern": `^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?(Z|[+-]((0[0-9]|1[0-3]):[0-5][0-9]|14:00))$`},
	"integer":      {"type": "integer", "minimum": -1 << 31, "maximum": 1<<31 - 1},
	"markdown":     {"type": "string", "minLength": 1},
	"oid":          {"type": "string", "pattern": `^urn:oid:[0-2](\.(0|[1-9][0-9]*))+$`},
	"positiveInt":  {"type": "integer", "minimum": 1, "maximum": 1<<31 - 1},
	"string":       {"type": "string", "minLength": 1},
	"time":         {"type": "string", "pattern": `^([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?$`},
	"unsignedInt":  {"type": "integer", "minimum": 0, "maximum": 1<<31 - 1},
	"uri":          {"type": "string", "pattern": `^\S+$`},
	"url":          {"type": "string", "pattern": `^\S+$`},
	"uuid":         {"type": "string", "format": "uuid"},
	"xhtml":        {"type": "string"},
}

// schemaOf returns a reference to the schema of a type. It adds this schema, and the schemas to which
// it refers, to the components.
func (c components) schemaOf(typeName string) schema.JSON {
	if _, made := c.Schemas[typeName]; !made {
		c.Schemas[typeName] = nil // types can be recursive
		c.Schemas[typeName] = c.object(typeName)
	}
	return refTo(typeName)
}

// object returns the schema of a resource, a datatype or a backbone element.
func (c components) object(typeName string) schema.JSON {
	properties := schema.JSON{}
	object := schema.JSON{"type": "object", "properties": properties, "additionalProperties": false}
	required := []string{}
	if isResource(typeName) {
		properties["resourceType"] = schema.JSON{"const": typeName}
		required = append(required, "resourceType")
	}
	// alternatives has, by the base name of a required element, the names of the properties of which one
	// must be present.
	alternatives := map[string][]string{}
	var bases []string
	for _, e := range r4.Elements(typeName) {
		properties[e.Name] = c.element(typeName, e)
		names := []string{e.Name}
		if e.Companion {
			properties["_"+e.Name] = c.companion(e)
			names = append(names, "_"+e.Name)
		}
		if e.Required && !slices.Contains(r4.OptionalInContract, typeName+"."+e.Base) {
			if alternatives[e.Base] == nil {
				bases = append(bases, e.Base)
			}
			alternatives[e.Base] = append(alternatives[e.Base], names...)
		}
	}
	var all []any
	for _, base := range bases {
		names := alternatives[base]
		if len(names) == 1 {
			required = append(required, names[0])
			continue
		}
		var either []any
		for _, name := range names {
			either = append(either, schema.JSON{"required": []string{name}})
		}
		all = append(all, schema.JSON{"anyOf": either})
	}
	if len(required) > 0 {
		object["required"] = required
	}
	if len(all) > 0 {
		object["allOf"] = all
	}
	return object
}

// isResource reports whether a type is a resource of any kind, which has resourceType.
func isResource(typeName string) bool {
	return slices.ContainsFunc(r4.Elements(typeName), func(e r4.ElementDefinition) bool { return e.Name == "implicitRules" })
}

// element returns the schema of an element's value.
func (c components) element(typeName string, e r4.ElementDefinition) schema.JSON {
	value := c.value(e)
	if !e.Repeated {
		return value
	}
	if e.Companion { // null stands for an item that has an extension but no value
		value = value.OrNull()
	}
	list := schema.JSON{"type": "array", "items": value}
	if typeName != "Bundle" { // the contract has empty lists of entries
		list["minItems"] = 1
	}
	return list
}

func (c components) value(e r4.ElementDefinition) schema.JSON {
	switch {
	case e.Type == "Resource":
		return schema.JSON{"type": "object", "properties": schema.JSON{"resourceType": schema.JSON{"type": "string"}}, "required": []string{"resourceType"}}
	case !e.Primitive:
		return c.schemaOf(e.Type)
	case len(e.Codes) > 0 && len(e.Codes) <= maxCodes:
		return schema.JSON{"type": "string", "enum": e.Codes}
	default:
		return primitives[e.Type]
	}
}

// companion returns the schema of the ids and extensions of a primitive element. R4
// json.html#primitive.
func (c components) companion(e r4.ElementDefinition) schema.JSON {
	element := c.schemaOf("Element")
	if !e.Repeated {
		return element
	}
	return schema.JSON{"type": "array", "minItems": 1, "items": element.OrNull()}
}

// bundleOf returns the schema of a Bundle of a type whose resources have the schema.
func (c components) bundleOf(kind string, resource schema.JSON) schema.JSON {
	return schema.JSON{"allOf": []any{c.schemaOf("Bundle"), schema.JSON{
		"properties": schema.JSON{
			"type":  schema.JSON{"const": kind},
			"entry": schema.JSON{"items": schema.JSON{"properties": schema.JSON{"resource": resource}}},
		},
		"required": []string{"type"},
	}}}
}

// resourceNames returns the names of the supported resource types.
func resourceNames() []string {
	names := make([]string, len(r4.Types))
	for i, t := range r4.Types {
		names[i] = t.Name
	}
	return names
}

// addFHIRSchemas adds the schemas of the FHIR API.
func (c components) addFHIRSchemas() {
	var each []any
	mapping := map[string]string{}
	for _, name := range append(resourceNames(), "OperationOutcome") {
		each = append(each, c.schemaOf(name))
		mapping[name] = "#/components/schemas/" + name
	}
	for _, name := range []string{"AuditEvent", "CapabilityStatement", "Parameters"} {
		c.schemaOf(name)
	}
	c.Schemas["AnyResource"] = schema.JSON{"oneOf": each, "discriminator": schema.JSON{"propertyName": "resourceType", "mapping": mapping}}
	c.Schemas["Searchset"] = c.bundleOf("searchset", refTo("AnyResource"))
	c.Schemas["History"] = c.bundleOf("history", refTo("AnyResource"))
	c.Schemas["AuditSearchset"] = c.bundleOf("searchset", schema.JSON{"oneOf": []any{refTo("AuditEvent"), refTo("OperationOutcome")}})
	c.Schemas["DeleteAcknowledgment"] = schema.JSON{
		"type": "object", "required": []string{"status", "statusText"}, "additionalProperties": false,
		"properties": schema.JSON{"status": schema.JSON{"type": "integer", "const": 200}, "statusText": schema.JSON{"type": "string"}},
	}
	c.Schemas["JSONPatch"] = schema.JSON{"type": "array", "maxItems": 1000, "items": schema.JSON{
		"type": "object", "required": []string{"op", "path"},
		"properties": schema.JSON{
			"op":   schema.JSON{"type": "string", "enum": []string{"add", "remove", "replace", "move", "copy", "test"}},
			"path": schema.JSON{"type": "string"}, "from": schema.JSON{"type": "string"}, "value": schema.JSON{},
		},
	}}
	link := schema.JSON{"type": "array", "items": schema.JSON{
		"type": "object", "required": []string{"type", "url"},
		"properties": schema.JSON{"type": schema.JSON{"type": "string"}, "url": schema.JSON{"type": "string"}},
	}}
	c.Schemas["ExportManifest"] = schema.JSON{
		"type": "object", "required": []string{"transactionTime", "request", "requiresAccessToken", "output", "error"},
		"properties": schema.JSON{
			"transactionTime": primitives["instant"], "request": schema.JSON{"type": "string"},
			"requiresAccessToken": schema.JSON{"type": "boolean"}, "output": link, "error": link,
		},
	}
	c.Schemas["SMARTConfiguration"] = schemaOfGo(reflect.TypeFor[fhir.SMARTConfiguration]())
	c.Schemas["SiteCapabilities"] = schema.JSON{"allOf": []any{refTo("CapabilityStatement"), schema.JSON{
		"properties": schema.JSON{"implementation": schema.JSON{"properties": schema.JSON{"extension": timeZoneExtension}}},
	}}}
}

// timeZoneExtension is the schema of the extensions of metadata's implementation: the time zone of
// a Site.
var timeZoneExtension = schema.JSON{
	"type": "array", "maxItems": 1,
	"description": "The time zone of the site, which applies to dates and times without an offset. If it is absent, the zone is UTC.",
	"items": schema.JSON{
		"type": "object", "required": []string{"url", "valueCode"},
		"properties": schema.JSON{
			"url":       schema.JSON{"const": fhir.TimeZone},
			"valueCode": schema.JSON{"type": "string", "description": "A name of the IANA time zone database, such as Europe/Vienna."},
		},
	},
}
