package search

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// chain parses parameter.rest or parameter:Type.rest, where rest is a parameter of the referenced
// records. Without a type, the chain follows references to all types that have the parameter. R4
// search.html#chaining.
func (p *parser) chain(at scope, name, value string) (store.Condition, error) {
	head, rest, _ := strings.Cut(name, ".")
	base, typeName, typed := strings.Cut(head, ":")
	d, err := p.lookup(at, base)
	if err != nil {
		return nil, err
	}
	at.links++
	switch {
	case d.kind != r4.SearchReference:
		return nil, fmt.Errorf("%s is a %s parameter; only a reference parameter can be followed by . and another parameter", base, kindNames[d.kind])
	case at.links > maxDepth:
		return nil, fmt.Errorf("the chain has more than %d links; use a shorter one", maxDepth)
	}
	targets := d.supportedTargets()
	if typed {
		target := fhirName(typeName)
		if !slices.Contains(targets, target) {
			return nil, unsupportedTarget(base, typeName, targets)
		}
		targets = []string{target}
	}
	return p.chainTo(targets, at, base, rest, value)
}

// unsupportedTarget returns the error for a type to which no reference of a parameter is followed.
func unsupportedTarget(param, typeName string, targets []string) error {
	return fmt.Errorf("%s is not a supported target type of %s; supported target types: %s", r4.Quote(typeName), param, strings.Join(targets, ", "))
}

// chainTo returns a condition on the records of the target types to which a parameter refers. It
// leaves out the types that do not have the parameter in rest, and returns an error if all of them
// are left out.
func (p *parser) chainTo(targets []string, at scope, param, rest, value string) (store.Condition, error) {
	var either store.Any
	var unknown error
	for _, target := range targets {
		at.types = []string{target}
		where, err := p.parseFilter(at, rest, value)
		if isUnknown := new(unknownError); errors.As(err, &isUnknown) {
			unknown = err
			continue
		}
		if err != nil {
			return nil, within(fmt.Sprintf("chain link %d, to %s", at.links, target), err)
		}
		p.reaches[target] = true
		either = append(either, store.Chain{Param: param, Type: target, Where: where})
	}
	switch len(either) {
	case 0:
		if len(targets) > 1 {
			unknown = unknownForAllTypes(targets, rest)
		}
		return nil, within(fmt.Sprintf("chain link %d", at.links), unknown)
	case 1:
		return either[0], nil
	}
	return either, nil
}

// unknownForAllTypes returns the error of a parameter that none of the types has.
func unknownForAllTypes(types []string, name string) error {
	var known []string
	for _, typeName := range types {
		known = mergeNames(known, namesOf([]string{typeName}))
	}
	return &unknownError{name: name, of: strings.Join(types, ", "), known: known}
}
