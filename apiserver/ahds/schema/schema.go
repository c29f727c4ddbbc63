// Package schema parses and writes the JSON objects of the AHDS facade according to tables of their
// fields. Parsing is strict. It reports the first syntax error, or up to about 100 errors of fields at
// once. Each value is preserved byte for byte. The package does not depend on HTTP or storage.
package schema

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/suggest"
)

// Field is one field of an object.
type Field struct {
	Name string
	// Check is the rule for values of the field.
	Check Check
	// Required is set if the field must be present and not null. Other fields may be null, and may
	// be omitted except from a PUT (see Optional). They then have their Default.
	Required bool
	// Default is the JSON value that the field has if it is omitted or null.
	Default string
	// Served is set if the service sets the field. A value from a client is ignored, so that a client
	// can send back what it read.
	Served bool
	// Optional is set if the field may be omitted from a PUT. An omitted field then has its Default.
	Optional bool
}

// Fields is a table of an object's fields, in the order in which they are written.
type Fields []Field

// names returns the names of all fields.
func (f Fields) names() []string {
	names := make([]string, len(f))
	for i := range f {
		names[i] = f[i].Name
	}
	return names
}

func (f Fields) find(name string) (Field, bool) {
	at := slices.IndexFunc(f, func(each Field) bool { return each.Name == name })
	if at < 0 {
		return Field{}, false
	}
	return f[at], true
}

// Sets reports whether an object has a field that clients set.
func (f Fields) Sets(object Object) bool {
	return slices.ContainsFunc(object, func(m Member) bool {
		field, known := f.find(m.Name)
		return known && !field.Served
	})
}

// Content maps the name of each field that clients set to its value.
type Content map[string]jsontext.Value

// Equal reports whether two contents are equal byte for byte.
func (c Content) Equal(other Content) bool {
	if len(c) != len(other) {
		return false
	}
	for name, value := range c {
		if got, ok := other[name]; !ok || string(got) != string(value) {
			return false
		}
	}
	return true
}

// Append writes the members of a content to an object, in the order of the table.
func (f Fields) Append(object *Writer, content Content) {
	for i := range f {
		if value, ok := content[f[i].Name]; ok {
			object.Raw(f[i].Name, value)
		}
	}
}

// unknown returns the error of a member that is not in the table.
func (f Fields) unknown(at jsontext.Pointer, name string) fielderror.Error {
	advice := "; the object has no fields, so send it empty"
	if len(f) > 0 {
		advice = suggest.Among(name, f.names(), "known names are")
	}
	return fielderror.Error{
		At: string(at.AppendToken(name)), Code: fielderror.CodeUnknownField, Detail: fielderror.Quote(name) + " is not a field of this object" + advice,
	}
}
