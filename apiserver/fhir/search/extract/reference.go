package extract

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// reference adds what a Reference refers to, and its identifier for :identifier. What
// is contained in the resource is nobody else's to refer to.
func (e *extraction) reference(json []byte) {
	for members := objectOf(json); ; {
		name, value, ok := members.next()
		if !ok {
			return
		}
		switch string(name) {
		case "reference":
			if text := string(unquoted(value)); text != "" && text[0] != '#' {
				to := literal(text)
				e.add(to)
				if to.Type == "" {
					e.mentionAt(text)
				}
			}
		case "identifier":
			if token, _ := readIdentifier(value); token != (store.Token{}) {
				e.derive(e.param.identifier, token)
			}
		}
	}
}

// literal is what Reference.reference names: a record, or whatever else.
func literal(text string) store.Reference {
	base, typ, id, ok := r4.SplitReference(text)
	if !ok {
		return store.Reference{Base: text}
	}
	return store.Reference{Base: base, Type: typ, ID: strings.ToLower(id)}
}
