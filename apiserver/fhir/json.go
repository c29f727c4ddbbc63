package fhir

import "github.com/go-json-experiment/json/jsontext"

// unquote returns the content of a JSON string. It reports false if value is not a string.
func unquote(value jsontext.Value) (string, bool) {
	if value.Kind() != jsontext.KindString {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err == nil
}
