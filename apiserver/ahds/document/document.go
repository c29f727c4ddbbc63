// Package document reads and writes the JSON objects of the AHDS facade by a table of
// their fields: strictly, all faults at once, and with each value kept as it was sent.
// It knows neither HTTP nor storage.
package document

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fault"
)

// Field is one field of an object.
type Field struct {
	Name string
	// Check finds what is wrong with a value.
	Check Check
	// Required fields must be given. Others may be left out, or null, which is the same:
	// they have Default then.
	Required bool
	// Default is JSON.
	Default string
	// Served fields are set by the service: those that clients send are passed over, so
	// that what was read can be sent back.
	Served bool
}

// Fields is the table of an object's fields, in the order in which they are written.
type Fields []Field

// names of the fields that clients may send.
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

// Content holds the value of every field that clients set, by name.
type Content map[string]jsontext.Value

// Equal reports whether two contents are the same, byte for byte.
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

// Append writes the content's members, in the order of the table, into an object.
func (f Fields) Append(object *Writer, content Content) {
	for i := range f {
		if value, ok := content[f[i].Name]; ok {
			object.Raw(f[i].Name, value)
		}
	}
}

// unknown is the fault of a member that no field has the name of.
func (f Fields) unknown(at jsontext.Pointer, name string) fault.Fault {
	return fault.Fault{
		At: string(at.AppendToken(name)), Code: fault.CodeUnknownField,
		Detail: fault.Quote(name) + " is not a field here" + fault.Nearest(name, f.names()),
	}
}
