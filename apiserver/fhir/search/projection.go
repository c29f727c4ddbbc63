package search

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// Element is a top-level element of a resource type. An empty Type means all types that have
// the element.
type Element struct{ Type, Name string }

// Summary selects the part of each resource to return. R4 search.html#summary.
type Summary string

// The values of Summary. NoSummary returns whole resources.
const (
	NoSummary   Summary = ""
	SummaryTrue Summary = "true"
	SummaryText Summary = "text"
	SummaryData Summary = "data"
)

func (p *parser) summary(_, value string) (string, error) {
	switch value {
	case "false":
	case "count":
		if _, counts := p.resultParameters["_count"]; !counts {
			return "", fmt.Errorf("%s is only supported for searches and histories; give true, text, data or false", r4.Quote(value))
		}
		p.totalOnly = true
	case "true", "text", "data":
		p.query.Summary = Summary(value)
	default:
		return "", fmt.Errorf("%s is not a supported summary; give one of true, text, data, count, false", r4.Quote(value))
	}
	return value, nil
}

var elementName = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

// elements parses _elements: names of top-level elements, with or without their type. R4
// search.html#elements.
func (p *parser) elements(_, value string) (string, error) {
	items, err := splitAlternatives(value)
	if err != nil {
		return "", err
	}
	for i, item := range items {
		var element Element
		typeName, name, typed := strings.Cut(item, ".")
		if typed && slices.Contains(p.query.Types, typeName) {
			element = Element{typeName, name}
		} else {
			element = Element{"", item}
		}
		if !elementName.MatchString(element.Name) {
			err := fmt.Errorf("%s is not a top-level element of %s; give names such as identifier,name", r4.Quote(item), p.subject())
			return "", within(position("value", i, len(items)), err)
		}
		p.query.Elements = append(p.query.Elements, element)
	}
	return value, nil
}

// ElementsOf returns the elements to return of the matches of a type. nil means all elements.
func (q Query) ElementsOf(typeName string) []string {
	var names []string
	for _, e := range q.Elements {
		if e.Type == "" || e.Type == typeName {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 && len(q.Elements) > 0 {
		return []string{"id"} // all elements in the query are those of other types
	}
	return names
}

// checkCombination returns an error if parameters exclude each other.
func (p *parser) checkCombination() *Error {
	if p.query.Summary != NoSummary && len(p.query.Elements) > 0 {
		return &Error{Parameter: "_elements", Problem: "the parameter cannot be combined with _summary=" + string(p.query.Summary) + "; give one of the two"}
	}
	return nil
}
