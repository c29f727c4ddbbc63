package fhir

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// eachMember visits the members of a JSON object. Values are parts of the text.
func eachMember(object []byte, visit func(name string, value jsontext.Value) error) error {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(object))
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for decoder.PeekKind() != jsontext.KindEndObject {
		token, err := decoder.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := nextValue(decoder, object)
		if err != nil {
			return err
		}
		if err := visit(name, value); err != nil {
			return err
		}
	}
	return nil
}

// eachElement visits the elements of a JSON array. They are parts of the text.
func eachElement(array []byte, visit func(value jsontext.Value) error) error {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(array))
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for decoder.PeekKind() != jsontext.KindEndArray {
		value, err := nextValue(decoder, array)
		if err != nil {
			return err
		}
		if err := visit(value); err != nil {
			return err
		}
	}
	return nil
}

// nextValue reads a value and returns the part of the text that it is.
func nextValue(decoder *jsontext.Decoder, text []byte) (jsontext.Value, error) {
	value, err := decoder.ReadValue()
	end := int(decoder.InputOffset())
	return text[end-len(value) : end], err
}

// stringOf returns what a JSON string says.
func stringOf(value jsontext.Value) (string, bool) {
	if value.Kind() != jsontext.KindString {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err == nil
}
