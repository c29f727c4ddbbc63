package extract

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// object walks over the members of a JSON object. It relies on the object being valid,
// as Read has seen to, and gives up where it is not.
type object struct{ rest []byte }

func objectOf(json []byte) object {
	if len(json) == 0 || json[0] != '{' {
		return object{}
	}
	return object{json[1:]}
}

// next returns the next member.
func (o *object) next() (name, value []byte, ok bool) {
	raw, ok := o.take()
	if !ok || raw[0] != '"' {
		return nil, nil, false
	}
	value, ok = o.take()
	return unquoted(raw), value, ok
}

// item returns the next value of a JSON array.
func (o *object) item() ([]byte, bool) { return o.take() }

// arrayOf walks over the values of a JSON array, with item.
func arrayOf(json []byte) object {
	if len(json) == 0 || json[0] != '[' {
		return object{}
	}
	return object{json[1:]}
}

// take takes a value from what is left, and what separates it from the one before.
func (o *object) take() ([]byte, bool) {
	at := 0
	for at < len(o.rest) && isBetween(o.rest[at]) {
		at++
	}
	end := at + valueEnd(o.rest[at:])
	if end == at {
		return nil, false
	}
	value := o.rest[at:end]
	o.rest = o.rest[end:]
	return value, true
}

// isBetween is what can stand between values.
func isBetween(c byte) bool {
	return c == ' ' || c == ',' || c == ':' || c == '\n' || c == '\t' || c == '\r'
}

// valueEnd is where the value ends that begins the text; 0 if none does.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			i += stringEnd(text[i:]) - 1
		case c == '{' || c == '[':
			depth++
			continue
		case c == '}' || c == ']':
			if depth == 0 {
				return i // the end of what the value would be in
			}
			depth--
		case depth > 0:
			continue
		default:
			for i+1 < len(text) && !isBetween(text[i+1]) && text[i+1] != '}' && text[i+1] != ']' {
				i++
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
	return 0
}

// stringEnd is where the string ends that begins the text.
func stringEnd(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// unquoted is what a JSON string says; nothing if the value is none.
func unquoted(json []byte) []byte {
	if len(json) < 2 || json[0] != '"' {
		return nil
	}
	if bytes.IndexByte(json, '\\') < 0 {
		return json[1 : len(json)-1]
	}
	text, err := jsontext.AppendUnquote(nil, json)
	if err != nil {
		return nil
	}
	return text
}
