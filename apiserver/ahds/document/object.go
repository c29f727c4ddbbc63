package document

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fault"
)

// maxDepth bounds how deep objects and arrays nest in a body, the body itself included.
const maxDepth = 64

// Member is a member of an object; its value is as it was sent.
type Member struct {
	Name  string
	Value jsontext.Value
}

// Object is a JSON object. No two of its members have the same name.
type Object []Member

// Get returns a member's value, nil when there is none.
func (o Object) Get(name string) jsontext.Value {
	at := slices.IndexFunc(o, func(m Member) bool { return m.Name == name })
	if at < 0 {
		return nil
	}
	return o[at].Value
}

// Parse reads one JSON object and nothing else: in UTF-8, without doubled names at any
// depth and without text behind it. The error is of type fault.Faults.
func Parse(text []byte) (Object, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, unparseable("", "the body is empty; send a JSON object")
	}
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	if decoder.PeekKind() != jsontext.KindBeginObject {
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, syntaxFault(err)
		}
		return nil, fault.Faults{{Code: fault.CodeWrongType, Detail: "the body is " + kindName(value.Kind()) + "; send a JSON object"}}
	}
	object, err := readObject(decoder, text)
	if err == nil {
		_, err = decoder.ReadToken()
		if err == nil {
			return nil, unparseable("", "there is more behind the JSON object; send one object only")
		}
		if errors.Is(err, io.EOF) {
			return object, object.checkDepth()
		}
	}
	return nil, syntaxFault(err)
}

func (o Object) checkDepth() error {
	for _, member := range o {
		if depth(member.Value) >= maxDepth {
			return fault.Faults{{
				At: string(jsontext.Pointer("").AppendToken(member.Name)), Code: fault.CodeTooDeep,
				Detail: "objects and arrays nest too deep; at most 64 levels are taken",
			}}
		}
	}
	return nil
}

// readObject reads the members of the object that comes next in a text.
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

// Members of a value that is known to be an object.
func Members(value jsontext.Value) (Object, error) {
	return readObject(jsontext.NewDecoder(bytes.NewBuffer(value)), value)
}

// depth is how deep objects and arrays nest in a valid value.
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

// syntaxFault says what is wrong with a text that is no JSON object.
func syntaxFault(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return unparseable("", "the body ends before its JSON object does")
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return unparseable("", "the body is not JSON: "+err.Error())
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return unparseable(syntax.JSONPointer, "the object has two members of this name; send one")
	}
	return unparseable(syntax.JSONPointer, "the body is not JSON: "+syntax.Err.Error())
}

func unparseable(at jsontext.Pointer, detail string) error {
	return fault.Faults{{At: string(at), Code: fault.CodeUnparseable, Detail: detail}}
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
