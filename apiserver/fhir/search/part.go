package search

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// Element is an element at the top of a type, or of all types where Type is empty.
type Element struct{ Type, Name string }

// Summary is a part of resources to answer with. R4 search.html#summary.
type Summary string

// The summaries; NoSummary is whole resources.
const (
	NoSummary   Summary = ""
	SummaryTrue Summary = "true"
	SummaryText Summary = "text"
	SummaryData Summary = "data"
)

// summary takes the part of resources to answer with.
func (p *parser) summary(_, value string) (string, error) {
	switch value {
	case "false":
	case "count":
		if _, counts := p.controls["_count"]; !counts {
			return "", fmt.Errorf("%s is for searches and histories; give true, text, data or false", r4.Quote(value))
		}
		p.totalOnly = true
	case "true", "text", "data":
		p.query.Summary = Summary(value)
	default:
		return "", fmt.Errorf("%s is no kind of summary; give one of true, text, data, count, false", r4.Quote(value))
	}
	return value, nil
}

var elementName = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

// elements takes names of elements at the top, with or without their type. R4
// search.html#elements.
func (p *parser) elements(_, value string) (string, error) {
	items, err := alternatives(value)
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
			err := fmt.Errorf("%s is not an element at the top of %s", r4.Quote(item), p.subject())
			return "", within(place("value", i, len(items)), err)
		}
		p.query.Elements = append(p.query.Elements, element)
	}
	return value, nil
}

// ElementsOf are the elements to return of a match of a type, none for all.
func (q Query) ElementsOf(typeName string) []string {
	var names []string
	for _, e := range q.Elements {
		if e.Type == "" || e.Type == typeName {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 && len(q.Elements) > 0 {
		return []string{"id"} // those asked for are all of other types
	}
	return names
}

// whole makes sure that the parameters go together.
func (p *parser) whole() *Error {
	if p.query.Summary != NoSummary && len(p.query.Elements) > 0 {
		return &Error{Parameter: "_elements", Problem: "goes with no _summary=" + string(p.query.Summary) + "; give one of the two"}
	}
	return nil
}
