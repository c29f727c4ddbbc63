package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

const paramHas = "_has"

const hasForm = "write _has:{type}:{reference parameter}:{parameter}={value}"

// hasAsValue reads the contract's spelling, _has=Type:field:param=value (4.1).
func (p *parser) hasAsValue(at scope, value string) (store.Condition, error) {
	name, value, ok := strings.Cut(value, "=")
	if !ok {
		return nil, fmt.Errorf("%s has no value for a parameter; %s, or _has={type}:{reference parameter}:{parameter}={value}", r4.Quote(name), hasForm)
	}
	return p.has(at, paramHas+":"+name, value)
}

// has reads _has:Type:field:param: records of the type that meet the parameter refer by
// the field to what is chosen. R4 search.html#has.
func (p *parser) has(at scope, name, value string) (store.Condition, error) {
	parts := strings.SplitN(name, ":", 4)
	if len(parts) < 4 || slices.Contains(parts, "") {
		return nil, fmt.Errorf("%s is not complete; %s", r4.Quote(name), hasForm)
	}
	from, err := typeNamed(parts[1])
	if err != nil {
		return nil, err
	}
	field, param := parts[2], parts[3]
	if _, err := referenceParam(from, field); err != nil {
		return nil, err
	}
	at.reversals++
	if at.reversals > maxDepth {
		return nil, fmt.Errorf("_has is nested more than %d deep", maxDepth)
	}
	at.types = []string{from}
	where, err := p.filter(at, param, value)
	if err != nil {
		return nil, within(fmt.Sprintf("_has %d, of %s", at.reversals, from), err)
	}
	p.reaches[from] = true
	return store.ReferredBy{Type: from, Param: field, Where: where}, nil
}

// typeNamed finds a type that the server keeps, by either spelling.
func typeNamed(spelling string) (string, error) {
	kept, ok := r4.TypeOf(spelling)
	if !ok {
		return "", fmt.Errorf("%s is not a resource type of this server; it has %s", r4.Quote(spelling), strings.Join(namesOfTypes(), ", "))
	}
	return kept.Name, nil
}

// referenceParam finds a reference parameter of a type.
func referenceParam(typeName, name string) (definition, error) {
	d, ok := definitions[typeName][name]
	if !ok || d.kind != r4.SearchReference {
		known := referencesFrom(typeName, namesOfTypes())
		return d, fmt.Errorf("%s is not a reference parameter of %s; there is %s", r4.Quote(name), typeName, orNone(strings.Join(known, ", ")))
	}
	return d, nil
}

func orNone(names string) string {
	if names == "" {
		return "none"
	}
	return names
}

// referencesFrom lists the parameters by which records of a type can refer to those of
// others.
func referencesFrom(from string, to []string) []string {
	var fields []string
	for _, name := range namesOf([]string{from}) {
		d := definitions[from][name]
		if d.kind == r4.SearchReference && !d.barren && slices.ContainsFunc(to, func(t string) bool { return slices.Contains(d.targets, t) }) {
			fields = append(fields, name)
		}
	}
	return fields
}
