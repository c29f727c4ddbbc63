// Package jsonwalk reads JSON objects and arrays one level deep. It copies no values: they are slices
// of the text.
package jsonwalk

import (
	"bytes"
	"errors"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is a member of a JSON object. Name is its name without escapes. RawName is the name as
// written: in quotes, with escapes.
type Member struct {
	Name           string
	RawName, Value jsontext.Value
}

var errKind = errors.New("the text does not start with the expected JSON object or array")

// Members returns an iterator over the members of the JSON object at the start of text. If text does
// not start with an object, or if the object is invalid, the last pair has the error.
func Members(text []byte, options ...jsontext.Options) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		var rawName jsontext.Value
		var name []byte
		for value, err := range values(text, jsontext.KindBeginObject, jsontext.KindEndObject, options) {
			if err != nil {
				yield(Member{}, err)
				return
			}
			if rawName == nil {
				rawName = value
				continue
			}
			name, err = jsontext.AppendUnquote(name[:0], rawName)
			if !yield(Member{string(name), rawName, value}, err) || err != nil {
				return
			}
			rawName = nil
		}
	}
}

// Elements returns an iterator over the elements of the JSON array at the start of text. If text does
// not start with an array, or if the array is invalid, the last pair has the error.
func Elements(text []byte, options ...jsontext.Options) iter.Seq2[jsontext.Value, error] {
	return values(text, jsontext.KindBeginArray, jsontext.KindEndArray, options)
}

// values returns the values between two brackets. The names of members count as values.
func values(text []byte, begin, end jsontext.Kind, options []jsontext.Options) iter.Seq2[jsontext.Value, error] {
	return func(yield func(jsontext.Value, error) bool) {
		decoder := jsontext.NewDecoder(bytes.NewBuffer(text), options...)
		if token, err := decoder.ReadToken(); err != nil {
			yield(nil, err)
			return
		} else if token.Kind() != begin {
			yield(nil, errKind)
			return
		}
		for decoder.PeekKind() != end {
			value, err := decoder.ReadValue()
			if err == nil {
				at := int(decoder.InputOffset())
				value = text[at-len(value) : at : at]
			}
			if !yield(value, err) || err != nil {
				return
			}
		}
	}
}
