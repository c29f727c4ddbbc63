package extract

import (
	"github.com/paddock-health/paddock/apiserver/fhir/search/fold"
	"github.com/paddock-health/paddock/apiserver/store"
)

// specialValues is the code system of booleans. R4 search.html#token.
const specialValues = "http://hl7.org/fhir/special-values"

// token adds a token unless it is empty.
func (e *extractor) token(t store.Token) {
	if t != (store.Token{}) {
		e.add(t)
	}
}

func foldCode(json []byte) string { return fold.Code(string(unquote(json))) }

func booleanToken(json []byte) store.Token {
	return store.Token{System: specialValues, Code: string(json)}
}

// concept adds the codings of a CodeableConcept, and its texts for :text.
func (e *extractor) concept(json []byte) {
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
func (e *extractor) coding(json []byte) {
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
			token.System = string(unquote(value))
		case "code":
			token.Code = foldCode(value)
		case "display":
			display = value
		}
	}
}

// tokenText adds a text for the modifier :text.
func (e *extractor) tokenText(json []byte) {
	if text, ok := textOf(unquote(json)); ok {
		e.derive(e.param.text, text)
	}
}

// identifier adds an Identifier, the text of its type for :text, and the codings of its type for
// :of-type.
func (e *extractor) identifier(json []byte) {
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
			e.typedValues(token.Code, value)
		}
	}
}

// typedValues adds an identifier's value with each coding of its type.
func (e *extractor) typedValues(value string, codings []byte) {
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

// readIdentifier reads an Identifier and returns its type as JSON.
func readIdentifier(json []byte) (token store.Token, kind []byte) {
	for members := objectOf(json); ; {
		name, value, ok := members.next()
		if !ok {
			return token, kind
		}
		switch string(name) {
		case "system":
			token.System = string(unquote(value))
		case "value":
			token.Code = foldCode(value)
		case "type":
			kind = value
		}
	}
}

// contactPoint adds a ContactPoint. Its system is phone, email and so on.
func (e *extractor) contactPoint(json []byte) {
	token, _ := readIdentifier(json)
	e.token(token)
}
