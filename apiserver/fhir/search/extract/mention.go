package extract

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// mention records the target of a Reference that no search parameter finds.
func (e *extractor) mention(json []byte) {
	for members := objectOf(json); ; {
		name, value, ok := members.next()
		if !ok {
			return
		}
		if string(name) == "reference" {
			if base, typ, id, ok := r4.SplitAddress(string(unquote(value))); ok { // it can be a record of a site
				e.mentioned = append(e.mentioned, store.Reference{Base: base, Type: typ, ID: strings.ToLower(id)})
			}
		}
	}
}

// mentions returns a store.Mention of each recorded target that no value of type store.Reference has.
func (e *extractor) mentions() []store.IndexValue {
	if len(e.mentioned) == 0 {
		return nil
	}
	found := map[store.Reference]bool{}
	for _, entry := range e.values {
		if reference, ok := entry.Value.(store.Reference); ok {
			found[reference] = true
		}
	}
	var mentions []store.IndexValue
	for _, reference := range e.mentioned {
		if !found[reference] {
			found[reference] = true
			mentions = append(mentions, store.IndexValue{Value: store.Mention(reference)})
		}
	}
	return mentions
}
