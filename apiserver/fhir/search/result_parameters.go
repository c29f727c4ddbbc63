package search

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// resultParameter is a parameter that does not select records, but affects how the result is
// returned. R4 search.html#return.
type resultParameter struct {
	// repeatable parameters may be sent several times.
	repeatable bool
	modifiers  []string
	// parse stores one value in the query and returns its normalized form.
	parse func(p *parser, modifier, value string) (string, error)
}

const paramType = "_type"

var searchResultParameters = map[string]resultParameter{
	paramType:      {parse: (*parser).verbatim},
	"_sort":        {parse: (*parser).sort},
	"_count":       {parse: (*parser).count},
	"_total":       {parse: (*parser).total},
	"_summary":     {parse: (*parser).summary},
	"_elements":    {parse: (*parser).elements},
	"_include":     {parse: (*parser).include, repeatable: true, modifiers: []string{modifierIterate}},
	"_revinclude":  {parse: (*parser).revInclude, repeatable: true, modifiers: []string{modifierIterate}},
	paramPageToken: {parse: (*parser).pageToken},
	paramFormat:    {parse: (*parser).verbatim},
	paramPretty:    {parse: (*parser).verbatim},
}

var historyResultParameters = map[string]resultParameter{
	"_summary":     {parse: (*parser).summary},
	"_elements":    {parse: (*parser).elements},
	"_since":       {parse: (*parser).since},
	"_at":          {parse: (*parser).at},
	"_count":       {parse: (*parser).count},
	paramPageToken: {parse: (*parser).pageToken},
	paramFormat:    {parse: (*parser).verbatim},
	paramPretty:    {parse: (*parser).verbatim},
}

var readResultParameters = map[string]resultParameter{
	"_elements": {parse: (*parser).elements},
	"_summary":  {parse: (*parser).summary},
	paramFormat: {parse: (*parser).verbatim},
	paramPretty: {parse: (*parser).verbatim},
}

// types sets the types to search: the type in the path, those in _type, or all types of the
// compartment or of the site.
func (p *parser) types(values url.Values) error {
	given := nonEmpty(values[paramType])
	switch {
	case p.Type != "":
		p.query.Types = []string{p.Type}
		if len(given) > 0 && p.allowsFilters {
			return errors.New("the parameter is only supported in a search without a type in the path; omit it")
		}
		return nil
	case len(given) == 0 && p.Compartment != nil:
		p.query.Types = p.Compartment.Types()
		return nil
	case len(given) == 0, !p.allowsFilters && p.Everything == "":
		p.query.Types = namesOfTypes()
		return nil
	case len(given) > 1:
		return errors.New("the parameter is given more than once; give it once, with types separated by commas")
	}
	for item := range strings.SplitSeq(given[0], ",") {
		name, err := parseTypeName(item)
		if err != nil {
			return err
		}
		if !slices.Contains(p.query.Types, name) {
			p.query.Types = append(p.query.Types, name)
		}
	}
	return nil
}

var digits = regexp.MustCompile(`^[0-9]+$`)

func (p *parser) count(_, value string) (string, error) {
	maximum := cmp.Or(p.MaxCount, MaxCount)
	if !digits.MatchString(value) {
		return "", fmt.Errorf("%s is not a number of items; give 0 to %d", r4.Quote(value), maximum)
	}
	count, err := strconv.Atoi(value)
	if err != nil || count > maximum {
		count = maximum // also if the number overflows an int
		p.query.CountReduced = true
	}
	p.query.Count = count
	return strconv.Itoa(count), nil
}

var totals = map[string]store.TotalMode{
	"none": store.TotalNone, "estimate": store.TotalWhenFree, "accurate": store.TotalAccurate,
}

func (p *parser) total(_, value string) (string, error) {
	total, ok := totals[value]
	if !ok {
		return "", fmt.Errorf("%s is not a kind of total; give one of %s", r4.Quote(value), sortedNames(totals))
	}
	p.query.Total = total
	return value, nil
}

func (p *parser) pageToken(_, value string) (string, error) {
	if len(value) > maxTokenSize {
		return "", errors.New("the value is longer than any page token; follow the next link unchanged, or start again without it")
	}
	p.query.PageToken = value
	return value, nil
}

// verbatim accepts any value, of a parameter that is checked elsewhere.
func (p *parser) verbatim(_, value string) (string, error) { return value, nil }

// WithoutPresentation returns the parameters without _format and _pretty, which every request may
// have.
func WithoutPresentation(values url.Values) url.Values {
	rest := maps.Clone(values)
	delete(rest, paramFormat)
	delete(rest, paramPretty)
	return rest
}
