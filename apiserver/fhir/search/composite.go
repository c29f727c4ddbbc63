package search

import (
	"fmt"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// compositeReaders returns the readers of composite parameters. R4 search.html#composite.
func compositeReaders(definition) map[string]reader {
	return map[string]reader{"": anyOf((*parser).composite)}
}

// composite parses two tokens separated by $. A record matches if one value of the parameter has
// both tokens.
func (p *parser) composite(d definition, item string) (store.Condition, error) {
	parts := splitUnescaped(item, '$')
	if len(parts) != len(d.components) || len(parts) != 2 {
		names := make([]string, len(d.components))
		for i, component := range d.components {
			names[i] = component.Name
		}
		return nil, fmt.Errorf(`%s does not have the form %s; correct it, and write \$ for a $ in a part`, r4.Quote(item), strings.Join(names, "$"))
	}
	tokens := make([]store.TokenIs, len(parts))
	for i, part := range parts {
		var err error
		if tokens[i], err = parseToken(d.components[i].Name, part); err != nil {
			return nil, within(d.components[i].Name, err)
		}
	}
	return store.PairIs{Param: d.name, First: tokens[0], Second: tokens[1]}, nil
}
