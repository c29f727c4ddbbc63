package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Schema is a named schema of the OpenAPI document, as its page of the API reference shows it.
type Schema struct {
	Name, Description string
	Value             Value
	// Fields are the fields of the schema and of the objects in it, but not of schemas that have a name.
	Fields []Field
	// Required has lists of fields, in addition to the fields that are required by themselves. An object
	// must have at least one field of each list.
	Required [][]string
	// Extensible reports whether fields of FHIR's primitive types can have an id and extensions, in a
	// field with the prefix _.
	Extensible bool
}

// Field is a field of an object.
type Field struct {
	// Name has the names of the objects around it: slots[].startAt.
	Name, Description string
	Required          bool
	Value             Value
}

// Value describes the values of a schema in words.
type Value struct {
	// Type is text in pieces.
	Type []Piece
	// Bounds are texts about the values in addition to their type, such as a pattern or a maximum.
	Bounds []string
}

// Piece is a piece of text. With Schema set, it is the name of that schema, which has a page.
type Piece struct{ Text, Schema string }

// schema is a JSON Schema. A nil schema allows any value.
type schema map[string]any

// Schema returns the schema with a name. It reports false if there is none.
func (r *Reference) Schema(name string) (Schema, bool, error) {
	text, found := r.components["schemas"][name]
	if !found {
		return Schema{}, false, nil
	}
	var read schema
	if err := decode(text, &read); err != nil {
		return Schema{}, false, fmt.Errorf("read the schema %s: %w", name, err)
	}
	description, _ := read["description"].(string)
	shown := Schema{Name: name, Description: description, Value: read.value(), Fields: read.fields(""), Required: read.alternatives()}
	for field := range read.object("properties") {
		shown.Extensible = shown.Extensible || read.isCompanion(field)
	}
	return shown, true, nil
}

// schema returns the schema to which s refers, or s itself.
func (c components) schema(s schema) (schema, error) {
	name, refers := s.refers()
	if !refers {
		return s, nil
	}
	var named schema
	if err := decode(c["schemas"][name], &named); err != nil {
		return nil, fmt.Errorf("read the schema %s: %w", name, err)
	}
	return named, nil
}

// object returns a member that is an object, or nil.
func (s schema) object(name string) schema {
	member, _ := s[name].(map[string]any)
	return member
}

// list returns a member that is an array, or nil.
func (s schema) list(name string) []any {
	member, _ := s[name].([]any)
	return member
}

// schemas returns a member that is an array of schemas, or nil.
func (s schema) schemas(name string) []schema {
	var all []schema
	for _, item := range s.list(name) {
		if each, ok := item.(map[string]any); ok {
			all = append(all, each)
		}
	}
	return all
}

// words returns the items of a member that is an array, as text.
func (s schema) words(name string) []string {
	var all []string
	for _, item := range s.list(name) {
		all = append(all, fmt.Sprint(item))
	}
	return all
}

// refers returns the name of the schema to which $ref refers.
func (s schema) refers() (string, bool) {
	ref, _ := s["$ref"].(string)
	return strings.CutPrefix(ref, "#/components/schemas/")
}

// isCompanion reports whether a property has the id and the extensions of another property, whose name
// is the same without the first underscore. R4 json.html#primitive.
func (s schema) isCompanion(name string) bool {
	of, companion := strings.CutPrefix(name, "_")
	return companion && s.object("properties")[of] != nil
}

// fields returns the fields of s and of the objects in it. The fields of each object are sorted by
// name. prefix is prepended to the names.
func (s schema) fields(prefix string) []Field {
	required := s.list("required")
	properties := s.object("properties")
	var all []Field
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if s.isCompanion(name) {
			continue
		}
		of := properties.object(name)
		description, _ := of["description"].(string)
		all = append(all, Field{prefix + name, description, slices.Contains(required, any(name)), of.value()})
		all = append(all, of.fields(prefix+name+".")...)
	}
	if items := s.object("items"); items != nil {
		all = append(all, items.fields(strings.TrimSuffix(prefix, ".")+"[].")...)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		for _, each := range s.schemas(key) {
			all = append(all, each.fields(prefix)...)
		}
	}
	return all
}

// alternatives returns lists of fields. An object must have at least one field of each list.
func (s schema) alternatives() [][]string {
	var all [][]string
	for _, each := range s.schemas("allOf") {
		var names []string
		for _, either := range each.schemas("anyOf") {
			names = append(names, either.words("required")...)
		}
		if names != nil {
			all = append(all, names)
		}
	}
	return all
}

// value describes the values of s.
func (s schema) value() Value { return Value{s.pieces(), s.bounds()} }

// pieces returns the type of s.
func (s schema) pieces() []Piece {
	if name, refers := s.refers(); refers {
		return []Piece{{name, name}}
	}
	if fixed, ok := s["const"]; ok {
		text, _ := json.Marshal(fixed) // it was JSON
		return []Piece{{Text: string(text)}}
	}
	if s["type"] == nil {
		return s.untyped()
	}
	if kinds := s.words("type"); kinds != nil {
		return []Piece{{Text: strings.Join(kinds, " or ")}}
	}
	if items := s.object("items"); items != nil {
		return append([]Piece{{Text: "array of "}}, items.pieces()...)
	}
	if values := s.object("additionalProperties"); values != nil {
		return append([]Piece{{Text: "object with values of type "}}, values.pieces()...)
	}
	return []Piece{{Text: fmt.Sprint(s["type"])}}
}

// untyped returns the type of s, which has no type of its own.
func (s schema) untyped() []Piece {
	for _, key := range []string{"oneOf", "anyOf"} {
		if all := s.schemas(key); all != nil {
			return joined(all, " or ")
		}
	}
	if all := s.schemas("allOf"); all != nil {
		return joined(all, " with ")
	}
	if s.object("properties") != nil || s.object("items") != nil {
		return []Piece{{Text: "the fields below"}}
	}
	return []Piece{{Text: "any value"}}
}

// joined returns the types of several schemas with a word between them.
func joined(all []schema, word string) []Piece {
	var pieces []Piece
	for _, each := range all {
		if pieces != nil {
			pieces = append(pieces, Piece{Text: word})
		}
		pieces = append(pieces, each.pieces()...)
	}
	return pieces
}

// bounds returns what holds for the values of s in addition to their type.
func (s schema) bounds() []string {
	var all []string
	if codes := s.words("enum"); codes != nil {
		all = append(all, "one of "+strings.Join(codes, ", "))
	}
	for _, each := range []struct{ from, to, unit string }{
		{"minimum", "maximum", ""}, {"minLength", "maxLength", " characters"}, {"minItems", "maxItems", " items"}, {"minProperties", "maxProperties", " values"},
	} {
		from, to := s[each.from], s[each.to]
		switch {
		case from != nil && to != nil:
			all = append(all, fmt.Sprintf("%v to %v%s", from, to, each.unit))
		case from != nil:
			all = append(all, fmt.Sprintf("%v or more%s", from, each.unit))
		case to != nil:
			all = append(all, fmt.Sprintf("up to %v%s", to, each.unit))
		}
	}
	for _, each := range []struct{ key, word string }{{"format", "format"}, {"contentEncoding", "encoding"}, {"default", "default"}, {"pattern", "pattern"}} {
		if member, ok := s[each.key]; ok {
			all = append(all, fmt.Sprintf("%s %v", each.word, member))
		}
	}
	if s["uniqueItems"] == true {
		all = append(all, "no item twice")
	}
	if items := s.object("items"); items != nil {
		for _, bound := range items.bounds() {
			all = append(all, "each "+bound)
		}
	}
	return all
}
