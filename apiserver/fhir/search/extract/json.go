package extract

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner reads the members of a JSON object or the elements of an array. The JSON must be valid;
// r4.Read has checked it. A scanner of invalid JSON ends early.
type scanner struct{ rest []byte }

func objectOf(json []byte) scanner {
	if len(json) == 0 || json[0] != '{' {
		return scanner{}
	}
	return scanner{json[1:]}
}

// next returns the next member of a JSON object, with its name unescaped.
func (o *scanner) next() (name, value []byte, ok bool) {
	raw, ok := o.nextValue()
	if !ok || raw[0] != '"' {
		return nil, nil, false
	}
	value, ok = o.nextValue()
	return unquote(raw), value, ok
}

// item returns the next element of a JSON array.
func (o *scanner) item() ([]byte, bool) { return o.nextValue() }

// arrayOf returns a scanner of a JSON array, for use with item.
func arrayOf(json []byte) scanner {
	if len(json) == 0 || json[0] != '[' {
		return scanner{}
	}
	return scanner{json[1:]}
}

// nextValue returns the next value, after any separators.
func (o *scanner) nextValue() ([]byte, bool) {
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

// isBetween reports whether c is white space or a separator between values.
func isBetween(c byte) bool {
	return c == ' ' || c == ',' || c == ':' || c == '\n' || c == '\t' || c == '\r'
}

// valueEnd returns the offset of the end of the value that starts text, or 0 if there is none.
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
				return i // the end of the enclosing object or array
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

// stringEnd returns the offset of the end of the string that starts text.
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

// unquote returns the content of a JSON string, or nil if json is not one.
func unquote(json []byte) []byte {
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
