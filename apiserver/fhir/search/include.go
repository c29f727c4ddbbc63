package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

const (
	wildcard        = "*"
	modifierIterate = "iterate"
)

func (p *parser) include(modifier, value string) (string, error) {
	return p.includes(store.Include{Iterate: modifier == modifierIterate}, value)
}

func (p *parser) revInclude(modifier, value string) (string, error) {
	return p.includes(store.Include{Iterate: modifier == modifierIterate, Reverse: true}, value)
}

// includes parses Type:param, Type:param:Target, Type:* or *. R4 search.html#include.
func (p *parser) includes(as store.Include, value string) (string, error) {
	items, err := splitAlternatives(value)
	if err != nil {
		return "", err
	}
	for i, item := range items {
		include, err := p.parseInclude(as, item)
		if err == nil {
			err = p.countValue(item)
		}
		if err != nil {
			return "", within(position("value", i, len(items)), err)
		}
		if !slices.Contains(p.query.Includes, include) {
			p.query.Includes = append(p.query.Includes, include)
		}
	}
	return value, nil
}

func (p *parser) parseInclude(include store.Include, item string) (store.Include, error) {
	if item == wildcard {
		p.addReachable(include)
		return include, nil
	}
	parts := strings.Split(item, ":")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return include, fmt.Errorf("%s cannot be included; write {type}:{reference parameter}, with :{target type} for one type of target, or *", r4.Quote(item))
	}
	var err error
	if include.Type, err = parseTypeName(parts[0]); err != nil {
		return include, err
	}
	targets := namesOfTypes()
	if parts[1] != wildcard {
		include.Param = parts[1]
		d, err := referenceParam(include.Type, include.Param)
		if err != nil {
			return include, err
		}
		targets = d.supportedTargets()
	}
	if len(parts) == 3 {
		if include.Target = fhirName(parts[2]); !slices.Contains(targets, include.Target) {
			return include, unsupportedTarget(item[:len(item)-len(parts[2])-1], parts[2], targets)
		}
	}
	p.addReachable(include)
	return include, nil
}

func namesOfTypes() []string {
	names := make([]string, len(r4.Types))
	for i, t := range r4.Types {
		names[i] = t.Name
	}
	return names
}

// addReachable adds the types of records that include may return.
func (p *parser) addReachable(include store.Include) {
	for _, from := range namesOfTypes() {
		if include.Type != "" && include.Type != from {
			continue
		}
		if include.Reverse {
			p.reaches[from] = true
			continue
		}
		for _, d := range definitions[from] {
			if d.kind != r4.SearchReference || d.alwaysEmpty || include.Param != "" && include.Param != d.name {
				continue
			}
			for _, target := range d.supportedTargets() {
				if include.Target == "" || include.Target == target {
					p.reaches[target] = true
				}
			}
		}
	}
}
