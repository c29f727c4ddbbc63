package extract

import "github.com/paddock-health/paddock/apiserver/store"

// characteristic adds a Group.characteristic as all pairs of its codes and values.
func (e *extractor) characteristic(json []byte) {
	var codes, values []store.Token
	for members := objectOf(json); ; {
		name, value, ok := members.next()
		if !ok {
			break
		}
		switch string(name) {
		case "code":
			codes = tokensOf(value)
		case "valueCodeableConcept":
			values = tokensOf(value)
		case "valueBoolean":
			values = []store.Token{booleanToken(value)}
		}
	}
	for _, code := range codes {
		for _, value := range values {
			e.add(store.Pair{First: code, Second: value})
		}
	}
}

// tokensOf returns the tokens of a CodeableConcept.
func tokensOf(json []byte) []store.Token {
	concept := extractor{param: &param{}}
	concept.concept(json)
	var tokens []store.Token
	for _, entry := range concept.values {
		if token, ok := entry.Value.(store.Token); ok {
			tokens = append(tokens, token)
		}
	}
	return tokens
}
