package search

import (
	"fmt"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

func idReaders() map[string]reader {
	return map[string]reader{"": (*parser).ids, "not": noneOf((*parser).ids)}
}

func (p *parser) ids(_ definition, items []string) (store.Condition, error) {
	var ids store.IDIn
	for i, id := range items {
		if err := p.countValue(id); err != nil {
			return nil, err
		}
		if !r4.ValidID(id) {
			return nil, within(position("value", i, len(items)), fmt.Errorf("%s is not an id; give %s", r4.Quote(id), r4.IDPattern))
		}
		ids = append(ids, strings.ToLower(id))
	}
	return ids, nil
}
