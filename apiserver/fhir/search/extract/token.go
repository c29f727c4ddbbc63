package extract

import (
	"github.com/paddock-health/paddock/apiserver/fhir/search/fold"
	"github.com/paddock-health/paddock/apiserver/store"
)

// specialValues is the system of booleans. R4 search.html#token.
const specialValues = "http://hl7.org/fhir/special-values"

// token adds a token, if it says anything.
func (e *extraction) token(t store.Token) {
	if t != (store.Token{}) {
		e.add(t)
	}
}

func foldedCode(json []byte) string { return fold.Code(string(unquoted(json))) }

func truth(json []byte) store.Token {
	return store.Token{System: specialValues, Code: string(json)}
}

// concept adds the codings of a CodeableConcept, and its texts for :text.
func (e *extraction) concept(json []byte) {
	for members := objectOf(json); ; {
		name, value, ok := members.next()
		if !ok {
			return
		}
		switch string(name) {
		case "coding":
			for codings := arrayOf(value); ; {
				coding, ok := codings.item()
				if !ok {
					break
				}
				e.coding(coding)
			}
		case "text":
			e.tokenText(value)
		}
	}
}

// coding adds a Coding, and its display for :text.
func (e *extraction) coding(json []byte) {
	token, display := readCoding(json)
	e.token(token)
	e.tokenText(display)
}

func readCoding(json []byte) (token store.Token, display []byte) {
	for members := objectOf(json); ; {
		name, value, ok := members.next()
		if !ok {
			return token, display
		}
		switch string(name) {
		case "system":
			token.System = string(unquoted(value))
		case "code":
			token.Code = foldedCode(value)
		case "display":
			display = value
		}
	}
}

// tokenText adds what :text looks for.
func (e *extraction) tokenText(json []byte) {
	if text, ok := textOf(unquoted(json)); ok {
		e.derive(e.param.text, text)
	}
}

// identifier adds an Identifier, its type's text for :text, and for :of-type the
// codings of its type.
func (e *extraction) identifier(json []byte) {
	token, kind := readIdentifier(json)
	e.token(token)
	for members := objectOf(kind); ; {
		name, value, ok := members.next()
		if !ok {
			return
		}
		switch string(name) {
		case "text":
			e.tokenText(value)
		case "coding":
			e.typesOf(token.Code, value)
		}
	}
}

// typesOf adds an identifier's value by the codings of its type.
func (e *extraction) typesOf(value string, codings []byte) {
	for items := arrayOf(codings); ; {
		item, ok := items.item()
		if !ok {
			return
		}
		if coding, _ := readCoding(item); coding.Code != "" && value != "" {
			e.derive(e.param.ofType, store.Token{System: coding.System, Code: coding.Code + "|" + value})
		}
	}
}

// readIdentifier reads an Identifier, and returns its type as it stands.
func readIdentifier(json []byte) (token store.Token, kind []byte) {
	for members := objectOf(json); ; {
		name, value, ok := members.next()
		if !ok {
			return token, kind
		}
		switch string(name) {
		case "system":
			token.System = string(unquoted(value))
		case "value":
			token.Code = foldedCode(value)
		case "type":
			kind = value
		}
	}
}

// contactPoint adds a ContactPoint: the system of its value is phone, email, ...
func (e *extraction) contactPoint(json []byte) {
	token, _ := readIdentifier(json)
	e.token(token)
}
