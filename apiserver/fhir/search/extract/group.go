package extract

import "github.com/paddock-health/paddock/apiserver/store"

// maxPairs is the maximum number of pairs of codes and values of one Group. Further pairs are not
// indexed: their number grows with the square of the size of the body, and no real Group has more.
const maxPairs = 10_000

// characteristic adds a Group.characteristic as all pairs of its codes and values, up to maxPairs.
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
		for _, value := range values[:min(len(values), maxPairs-e.pairs)] {
			e.pairs++
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
