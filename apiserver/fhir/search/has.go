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

// hasAsValue parses the contract's spelling, _has=Type:field:param=value (4.1).
func (p *parser) hasAsValue(at scope, value string) (store.Condition, error) {
	name, value, ok := strings.Cut(value, "=")
	if !ok {
		return nil, fmt.Errorf("%s has no value; %s, or _has={type}:{reference parameter}:{parameter}={value}", r4.Quote(name), hasForm)
	}
	return p.has(at, paramHas+":"+name, value)
}

// has parses _has:Type:field:param. It selects the records to which a record of Type refers by the
// reference parameter field, if that record matches param. R4 search.html#has.
func (p *parser) has(at scope, name, value string) (store.Condition, error) {
	parts := strings.SplitN(name, ":", 4)
	if len(parts) < 4 || slices.Contains(parts, "") {
		return nil, fmt.Errorf("%s is not complete; %s", r4.Quote(name), hasForm)
	}
	typeName, err := parseTypeName(parts[1])
	if err != nil {
		return nil, err
	}
	field, param := parts[2], parts[3]
	if _, err := referenceParam(typeName, field); err != nil {
		return nil, err
	}
	at.reversals++
	if at.reversals > maxDepth {
		return nil, fmt.Errorf("_has is nested more than %d levels deep; use fewer levels", maxDepth)
	}
	at.types = []string{typeName}
	where, err := p.parseFilter(at, param, value)
	if err != nil {
		return nil, within(fmt.Sprintf("_has level %d, on %s", at.reversals, typeName), err)
	}
	p.reaches[typeName] = true
	return store.ReferredBy{Type: typeName, Param: field, Where: where}, nil
}

// parseTypeName returns FHIR's name of a supported type, which may be spelled as FHIR's name or as
// the contract's segment.
func parseTypeName(spelling string) (string, error) {
	kept, ok := r4.TypeOf(spelling)
	if !ok {
		return "", fmt.Errorf("%s is not a supported resource type; supported types: %s", r4.Quote(spelling), strings.Join(namesOfTypes(), ", "))
	}
	return kept.Name, nil
}

// fhirName returns FHIR's name of a supported type, which may be spelled as FHIR's name or as the
// contract's segment. It returns any other text unchanged.
func fhirName(spelling string) string {
	if kept, ok := r4.TypeOf(spelling); ok {
		return kept.Name
	}
	return spelling
}

func referenceParam(typeName, name string) (definition, error) {
	d, ok := definitions[typeName][name]
	if !ok || d.kind != r4.SearchReference {
		known := referencesFrom(typeName, namesOfTypes())
		return d, fmt.Errorf("%s is not a reference parameter of %s; supported reference parameters: %s", r4.Quote(name), typeName, orNone(strings.Join(known, ", ")))
	}
	return d, nil
}

func orNone(names string) string {
	if names == "" {
		return "none"
	}
	return names
}

// referencesFrom returns the reference parameters of one type, named by from, that can refer to one
// of the types in to.
func referencesFrom(from string, to []string) []string {
	var fields []string
	for _, name := range namesOf([]string{from}) {
		d := definitions[from][name]
		if d.kind == r4.SearchReference && !d.alwaysEmpty && slices.ContainsFunc(to, func(t string) bool { return slices.Contains(d.targets, t) }) {
			fields = append(fields, name)
		}
	}
	return fields
}
