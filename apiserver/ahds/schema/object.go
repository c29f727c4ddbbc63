package schema

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
)

// maxDepth is the maximum nesting of objects and arrays in a body, including the body itself. In a
// list, the limit applies to each item.
const maxDepth = 64

// Member is a member of an object. Its value is preserved byte for byte.
type Member struct {
	Name  string
	Value jsontext.Value
}

// Object is a JSON object. No two of its members have the same name.
type Object []Member

// Get returns the value of a member, and nil if there is none.
func (o Object) Get(name string) jsontext.Value {
	at := slices.IndexFunc(o, func(m Member) bool { return m.Name == name })
	if at < 0 {
		return nil
	}
	return o[at].Value
}

// Parse parses text that is a single JSON object in UTF-8. Duplicate names at any depth and text
// after the object are errors. Errors: fielderror.Errors.
func Parse(text []byte) (Object, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, unparseable("", "the body is empty; send a JSON object")
	}
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	if decoder.PeekKind() != jsontext.KindBeginObject {
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, syntaxError(err)
		}
		return nil, fielderror.Errors{{Code: fielderror.CodeWrongType, Detail: "the body is " + kindName(value.Kind()) + "; send a JSON object"}}
	}
	object, err := readObject(decoder, text)
	if err == nil {
		_, err = decoder.ReadToken()
		if err == nil {
			return nil, unparseable("", "the body has more text after the JSON object; send one object only")
		}
		if errors.Is(err, io.EOF) {
			return object, object.checkDepth()
		}
	}
	return nil, syntaxError(err)
}

// ParseList parses text that is a single JSON array of 1 to maxItems objects, with the rules of Parse.
// IsList must be true for the text. Errors: fielderror.Errors.
func ParseList(text []byte, maxItems int) ([]Object, error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	if _, err := decoder.ReadToken(); err != nil {
		return nil, syntaxError(err)
	}
	var objects []Object
	var errs fielderror.Errors
	items := 0
	for ; decoder.PeekKind() != jsontext.KindEndArray; items++ {
		if items >= maxItems { // the rest is only counted, because each object needs more memory than its text
			if err := decoder.SkipValue(); err != nil {
				return nil, syntaxError(err)
			}
			continue
		}
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, syntaxError(err)
		}
		at := jsontext.Pointer("").AppendToken(strconv.Itoa(len(objects)))
		object, wrong := readItem(at, text, int(decoder.InputOffset()), value)
		objects = append(objects, object)
		if len(errs) < maxErrors {
			errs = append(errs, wrong...)
		}
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, syntaxError(err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, unparseable("", "the body has more text after the JSON array; send one array only")
	}
	if items < 1 || items > maxItems {
		errs = fielderror.Errors{{Code: fielderror.CodeOutOfRange, Detail: "the array has " + strconv.Itoa(items) + " items; send 1 to " + strconv.Itoa(maxItems)}}
	}
	return objects, errs.Err()
}

// readItem parses the item of an array that ends at offset end of text.
func readItem(at jsontext.Pointer, text []byte, end int, value jsontext.Value) (Object, fielderror.Errors) {
	if value.Kind() != jsontext.KindBeginObject {
		return nil, wrongType(at, value, "an object")
	}
	object, err := Members(text[end-len(value) : end : end])
	if err == nil {
		err = object.checkDepth()
	}
	var errs fielderror.Errors
	if err != nil && !errors.As(err, &errs) {
		errors.As(syntaxError(err), &errs)
	}
	return object, errs.Below(string(at))
}

// IsList reports whether the first character of text is that of a JSON array.
func IsList(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '['
}

func (o Object) checkDepth() error {
	for _, member := range o {
		if depth(member.Value) >= maxDepth {
			return fielderror.Errors{{
				At: string(jsontext.Pointer("").AppendToken(member.Name)), Code: fielderror.CodeTooDeep,
				Detail: "objects and arrays are nested too deeply; send at most 64 levels",
			}}
		}
	}
	return nil
}

// readObject reads the next value of the decoder, which must be an object. text is the decoder's
// input, of which the values are slices.
func readObject(decoder *jsontext.Decoder, text []byte) (Object, error) {
	if _, err := decoder.ReadToken(); err != nil {
		return nil, err
	}
	var object Object
	for decoder.PeekKind() != jsontext.KindEndObject {
		name, err := decoder.ReadToken()
		if err != nil {
			return nil, err
		}
		member := Member{Name: name.String()}
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		end := int(decoder.InputOffset())
		member.Value = text[end-len(value) : end : end]
		object = append(object, member)
	}
	_, err := decoder.ReadToken()
	return object, err
}

// Members returns the members of a value whose kind is known to be object.
func Members(value jsontext.Value) (Object, error) {
	return readObject(jsontext.NewDecoder(bytes.NewBuffer(value)), value)
}

// depth returns the nesting of objects and arrays in a valid value.
func depth(value jsontext.Value) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// syntaxError converts an error of the decoder to fielderror.Errors.
func syntaxError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return unparseable("", "the body ends within a JSON value; send the whole value")
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return unparseable("", "the body is not JSON: "+err.Error())
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return unparseable(syntax.JSONPointer, "the object has two members with this name; send one of them")
	}
	return unparseable(syntax.JSONPointer, "the body is not JSON: "+syntax.Err.Error())
}

func unparseable(at jsontext.Pointer, detail string) error {
	return fielderror.Errors{{At: string(at), Code: fielderror.CodeUnparseable, Detail: detail}}
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "an array"
	case jsontext.KindNull:
		return "null"
	default:
		return "a boolean"
	}
}
