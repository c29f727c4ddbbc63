package document

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fault"
)

// maxFaults bounds how many faults are told at once.
const maxFaults = 100

// Identity is the field that holds an object's id: it may be sent, and cannot be changed.
type Identity struct {
	Name string
	// Path is the id in the path of the request, empty where it has none.
	Path string
}

// check compares an id that was sent with that of the path. Ids that differ in case
// only are one.
func (id Identity) check(value jsontext.Value) (sent string, faults fault.Faults) {
	at := string(jsontext.Pointer("").AppendToken(id.Name))
	if faults := UUID()(jsontext.Pointer(at), value); len(faults) > 0 {
		return "", faults
	}
	sent = String(value)
	if id.Path != "" && !strings.EqualFold(sent, id.Path) {
		return "", fault.Faults{{
			At: at, Code: fault.CodeIDMismatch, Detail: "the id " + fault.Quote(sent) + " is not that of the path, " + fault.Quote(id.Path) + "; ids cannot change",
		}}
	}
	return sent, nil
}

// Create reads what a new object is to hold, and the id that the client chose, if it did.
func (f Fields) Create(object Object, id Identity) (content Content, sent string, err error) {
	content, sent, faults := f.read(object, id)
	for i := range f {
		faults = append(faults, f[i].complete("", content)...)
	}
	return content, sent, faults.Err()
}

// complete gives a field that was not sent its default, if it may be left out.
func (f Field) complete(at jsontext.Pointer, content Content) fault.Faults {
	_, given := content[f.Name]
	switch {
	case f.Served || given:
		return nil
	case f.Required:
		return fault.Faults{{At: string(at.AppendToken(f.Name)), Code: fault.CodeMissing, Detail: f.Name + " is required"}}
	}
	content[f.Name] = jsontext.Value(f.Default)
	return nil
}

// Replace reads an object that takes the place of another: it must have every field
// that clients set, if only as null.
func (f Fields) Replace(object Object, id Identity) (Content, error) {
	content, _, faults := f.read(object, id)
	for _, field := range f {
		if _, given := content[field.Name]; field.Served || given {
			continue
		}
		faults = append(faults, fault.Fault{
			At: string(jsontext.Pointer("").AppendToken(field.Name)), Code: fault.CodeMissing,
			Detail: field.Name + " is missing: PUT replaces the whole record and must have all of its fields; PATCH changes single ones",
		})
	}
	return content, faults.Err()
}

// Patch applies a merge patch (RFC 7396) to a content. What it does not name stays as it
// is, byte for byte.
func (f Fields) Patch(before Content, patch Object, id Identity) (Content, error) {
	merged := make(Object, 0, len(patch))
	for _, member := range patch {
		if current, known := before[member.Name]; known && member.Value.Kind() == jsontext.KindBeginObject {
			var err error
			if member.Value, err = merge(current, member.Value); err != nil {
				return nil, syntaxFault(err)
			}
		}
		merged = append(merged, member)
	}
	changed, _, faults := f.read(merged, id)
	after := Content{}
	for name, value := range before {
		after[name] = value
	}
	for name, value := range changed {
		after[name] = value
	}
	return after, faults.Err()
}

// read checks the members of an object. Null unsets a field that may be left out.
func (f Fields) read(object Object, id Identity) (content Content, sent string, faults fault.Faults) {
	content = Content{}
	for _, member := range object {
		if len(faults) >= maxFaults {
			break
		}
		if member.Name == id.Name {
			var wrong fault.Faults
			sent, wrong = id.check(member.Value)
			faults = append(faults, wrong...)
			continue
		}
		field, known := f.find(member.Name)
		switch {
		case !known:
			faults = append(faults, append(Fields{{Name: id.Name}}, f...).unknown("", member.Name))
		case field.Served:
		default:
			faults = append(faults, field.check("", &member.Value)...)
			content[field.Name] = member.Value
		}
	}
	return content, sent, faults
}

// check finds what is wrong with a field's value. Null becomes the default.
func (f Field) check(parent jsontext.Pointer, value *jsontext.Value) fault.Faults {
	at := parent.AppendToken(f.Name)
	if value.Kind() != jsontext.KindNull {
		return f.Check(at, *value)
	}
	if f.Required {
		return fault.Faults{{At: string(at), Code: fault.CodeMissing, Detail: f.Name + " is required and cannot be null"}}
	}
	*value = jsontext.Value(f.Default)
	return nil
}
