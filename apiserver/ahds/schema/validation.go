package schema

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
)

// maxErrors is the number of errors after which no further members of an object are checked.
const maxErrors = 100

// Identity is the field with an object's id. A client may send the field but cannot change it. The zero
// value is that of an object without such a field.
type Identity struct {
	Name string
	// Path is the id in the path of the request. It is empty if the path has none.
	Path string
}

// with returns a table that has the id before the fields of f.
func (f Fields) with(id Identity) Fields {
	if id.Name == "" {
		return f
	}
	return append(Fields{{Name: id.Name}}, f...)
}

// check validates an id in the body and compares it with that of the path, ignoring case. Null equals
// an omitted id.
func (id Identity) check(value jsontext.Value) (sent string, errs fielderror.Errors) {
	if value.Kind() == jsontext.KindNull {
		return "", nil
	}
	at := string(jsontext.Pointer("").AppendToken(id.Name))
	if errs := UUID().Errors(jsontext.Pointer(at), value); len(errs) > 0 {
		return "", errs
	}
	sent = String(value)
	if id.Path != "" && !strings.EqualFold(sent, id.Path) {
		return "", fielderror.Errors{{
			At: at, Code: fielderror.CodeIDMismatch, Detail: "the id " + fielderror.Quote(sent) + " differs from " + fielderror.Quote(id.Path) + " in the path; an id cannot change, so send that of the path or none",
		}}
	}
	return sent, nil
}

// Create returns the content of a new object, and the id that the client chose, or "". Errors:
// fielderror.Errors.
func (f Fields) Create(object Object, id Identity) (content Content, sent string, err error) {
	content, sent, errs := f.read(object, id)
	for i := range f {
		errs = append(errs, f[i].complete("", content)...)
	}
	return content, sent, errs.Err()
}

// complete sets an absent field to its default, or returns an error if it is required.
func (f Field) complete(at jsontext.Pointer, content Content) fielderror.Errors {
	_, given := content[f.Name]
	switch {
	case f.Served || given:
		return nil
	case f.Required:
		return fielderror.Errors{{At: string(at.AppendToken(f.Name)), Code: fielderror.CodeMissing, Detail: f.Name + " is required but missing; send a value"}}
	}
	content[f.Name] = jsontext.Value(f.Default)
	return nil
}

// Replace returns the content of an object that replaces another. The object must have each field
// that clients set, except Optional fields. The value may be null unless the field is Required.
// Errors: fielderror.Errors.
func (f Fields) Replace(object Object, id Identity) (Content, error) {
	content, _, errs := f.read(object, id)
	for _, field := range f {
		if _, given := content[field.Name]; field.Served || given {
			continue
		}
		if field.Optional {
			content[field.Name] = jsontext.Value(field.Default)
			continue
		}
		errs = append(errs, fielderror.Error{
			At: string(jsontext.Pointer("").AppendToken(field.Name)), Code: fielderror.CodeMissing,
			Detail: field.Name + " is missing; PUT replaces the whole record, so send all fields, or change single fields with PATCH",
		})
	}
	return content, errs.Err()
}

// Patch applies a merge patch (RFC 7396) to a content. Fields that the patch does not name are
// preserved byte for byte. Errors: fielderror.Errors.
func (f Fields) Patch(before Content, patch Object, id Identity) (Content, error) {
	merged := make(Object, 0, len(patch))
	for _, member := range patch {
		if current, known := before[member.Name]; known && member.Value.Kind() == jsontext.KindBeginObject {
			var err error
			if member.Value, err = merge(current, member.Value); err != nil {
				return nil, syntaxError(err)
			}
		}
		merged = append(merged, member)
	}
	changed, _, errs := f.read(merged, id)
	after := Content{}
	for name, value := range before {
		after[name] = value
	}
	for name, value := range changed {
		after[name] = value
	}
	return after, errs.Err()
}

// read validates the members of an object. null sets a field to its default unless it is required.
func (f Fields) read(object Object, id Identity) (content Content, sent string, errs fielderror.Errors) {
	content = Content{}
	for _, member := range object {
		if len(errs) >= maxErrors {
			break
		}
		if id.Name != "" && member.Name == id.Name {
			var wrong fielderror.Errors
			sent, wrong = id.check(member.Value)
			errs = append(errs, wrong...)
			continue
		}
		field, known := f.find(member.Name)
		switch {
		case !known:
			errs = append(errs, f.with(id).unknown("", member.Name))
		case field.Served:
		default:
			errs = append(errs, field.check("", &member.Value)...)
			content[field.Name] = member.Value
		}
	}
	return content, sent, errs
}

// check returns the errors of a field's value. It replaces null with the default.
func (f Field) check(parent jsontext.Pointer, value *jsontext.Value) fielderror.Errors {
	at := parent.AppendToken(f.Name)
	if value.Kind() != jsontext.KindNull {
		return f.Check.Errors(at, *value)
	}
	if f.Required {
		return fielderror.Errors{{At: string(at), Code: fielderror.CodeMissing, Detail: f.Name + " is required and cannot be null; send a value"}}
	}
	*value = jsontext.Value(f.Default)
	return nil
}
