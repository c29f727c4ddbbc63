package extract

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// mention notes what a Reference that no parameter finds refers to.
func (e *extraction) mention(json []byte) {
	for members := objectOf(json); ; {
		name, value, ok := members.next()
		if !ok {
			return
		}
		if string(name) == "reference" {
			e.mentionAt(string(unquoted(value)))
		}
	}
}

// mentionAt notes the record that a literal reference names, if a site can have it. The
// path of its URL may spell the type as searches do not.
func (e *extraction) mentionAt(reference string) {
	if base, typ, id, ok := r4.SplitAddress(reference); ok {
		e.mentioned = append(e.mentioned, store.Reference{Base: base, Type: typ, ID: strings.ToLower(id)})
	}
}

// mentions are the entries of what is mentioned and found by no parameter.
func (e *extraction) mentions() []store.Entry {
	if len(e.mentioned) == 0 {
		return nil
	}
	found := map[store.Reference]bool{}
	for _, entry := range e.entries {
		if reference, ok := entry.Value.(store.Reference); ok {
			found[reference] = true
		}
	}
	var mentions []store.Entry
	for _, reference := range e.mentioned {
		if !found[reference] {
			found[reference] = true
			mentions = append(mentions, store.Entry{Value: store.Mention(reference)})
		}
	}
	return mentions
}
