package document

import "github.com/go-json-experiment/json/jsontext"

// ContentOf reads back an object that Append wrote.
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
			content[field.Name] = jsontext.Value(field.Default) // a field that is newer than the record
		}
	}
	return content, nil
}
