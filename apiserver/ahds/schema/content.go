package schema

import "github.com/go-json-experiment/json/jsontext"

// ContentOf parses an object that Append wrote. An absent field gets its default, unless it is
// Required or Served.
func (f Fields) ContentOf(value jsontext.Value) (Content, error) {
	object, err := Members(value)
	if err != nil {
		return nil, err
	}
	content := make(Content, len(object))
	for _, member := range object {
		content[member.Name] = member.Value
	}
	for _, field := range f {
		if _, stored := content[field.Name]; !stored && !field.Served && !field.Required {
			content[field.Name] = jsontext.Value(field.Default) // the field is newer than the record
		}
	}
	return content, nil
}
