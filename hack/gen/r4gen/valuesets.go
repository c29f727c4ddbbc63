package main

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/text/currency"
)

const (
	allLanguages = "http://hl7.org/fhir/ValueSet/all-languages"
	mimeTypes    = "http://hl7.org/fhir/ValueSet/mimetypes"
	currencies   = "http://hl7.org/fhir/ValueSet/currencies"
)

// bySyntax has the code systems of value sets that are too large for a list. The reader checks the
// syntax of their codes.
var bySyntax = map[string]string{
	allLanguages: "urn:ietf:bcp:47",
	mimeTypes:    "urn:ietf:bcp:13",
}

// unknown are value sets of units and of LOINC answers that the package does not hold. No type that
// the server keeps is bound to one of them.
var unknown = map[string]bool{
	"http://hl7.org/fhir/ValueSet/ucum-units": true,
	"http://loinc.org/vs/LL379-9":             true,
}

// expansion is a value set with all its codes.
type expansion struct {
	url     string
	systems []codes
}

// codes has the codes of one system, sorted. It has no codes if the reader checks their syntax instead.
type codes struct {
	system string
	codes  []string
}

// expand makes the expansions of all value sets that are bound.
func (d *definitions) expand(rows []typeRow) ([]expansion, error) {
	bound := map[string]bool{}
	for _, row := range rows {
		for _, element := range row.elements {
			if element.valueSet != "" && !unknown[element.valueSet] {
				bound[element.valueSet] = true
			}
		}
	}
	var expansions []expansion
	for url := range bound {
		e, err := d.expandOne(url)
		if err != nil {
			return nil, fmt.Errorf("expand %s: %w", url, err)
		}
		expansions = append(expansions, e)
	}
	slices.SortFunc(expansions, func(a, b expansion) int {
		if a.url < b.url {
			return -1
		}
		return 1
	})
	return expansions, nil
}

func (d *definitions) expandOne(url string) (expansion, error) {
	e := expansion{url: url}
	if system, ok := bySyntax[url]; ok {
		e.systems = []codes{{system: system}}
		return e, nil
	}
	definition, ok := d.valueSets[url]
	if !ok {
		return e, errors.New("the package does not have the value set")
	}
	if len(definition.Compose.Exclude) > 0 {
		return e, errors.New("compose.exclude is not supported")
	}
	for _, include := range definition.Compose.Include {
		found, err := d.included(include)
		if err != nil {
			return e, err
		}
		slices.Sort(found)
		e.systems = append(e.systems, codes{include.System, slices.Compact(found)})
	}
	return e, nil
}

func (d *definitions) included(include include) ([]string, error) {
	if len(include.Filter) > 0 || len(include.ValueSet) > 0 {
		return nil, errors.New("compose.include.filter and compose.include.valueSet are not supported")
	}
	if len(include.Concept) > 0 {
		return flatten(include.Concept), nil
	}
	if include.System == "urn:iso:std:iso:4217" {
		return currencyCodes(), nil
	}
	system, ok := d.codeSystems[include.System]
	if !ok || system.Content != "complete" {
		return nil, fmt.Errorf("the package does not have all codes of the code system %s", include.System)
	}
	return flatten(system.Concept), nil
}

func flatten(concepts []concept) []string {
	var found []string
	for _, c := range concepts {
		found = append(append(found, c.Code), flatten(c.Concept)...)
	}
	return found
}

// currencyCodes returns the codes of ISO 4217 that golang.org/x/text knows. HL7's package does not
// list them.
func currencyCodes() []string {
	var found []string
	for i := range 26 * 26 * 26 {
		code := string([]byte{'A' + byte(i/26/26), 'A' + byte(i/26%26), 'A' + byte(i%26)})
		if _, err := currency.ParseISO(code); err == nil {
			found = append(found, code)
		}
	}
	return found
}
