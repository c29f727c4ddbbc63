package extract

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// reference adds the target of a Reference, and its identifier for :identifier. References to
// contained resources are left out, because a search cannot name a contained resource.
func (e *extractor) reference(json []byte) {
	for members := objectOf(json); ; {
		name, value, ok := members.next()
		if !ok {
			return
		}
		switch string(name) {
		case "reference":
			if text := string(unquote(value)); text != "" && text[0] != '#' {
				e.add(parseReference(text))
			}
		case "identifier":
			if token, _ := readIdentifier(value); token != (store.Token{}) {
				e.derive(e.param.identifier, token)
			}
		}
	}
}

// parseReference parses Reference.reference: a record, or any other URL.
func parseReference(text string) store.Reference {
	base, typ, id, ok := r4.SplitReference(text)
	if !ok {
		return store.Reference{Base: text}
	}
	return store.Reference{Base: base, Type: typ, ID: strings.ToLower(id)}
}
