package search

import (
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

// control is a parameter that does not choose records, but says what to answer.
type control struct {
	// repeats says that it may be given several times.
	repeats   bool
	modifiers []string
	// take takes one value into the query and returns it as it was understood.
	take func(p *parser, modifier, value string) (string, error)
}

const paramType = "_type"

// searchControls are those of a search.
var searchControls = map[string]control{
	paramType:      {take: (*parser).asIs},
	"_sort":        {take: (*parser).sort},
	"_count":       {take: (*parser).count},
	"_total":       {take: (*parser).total},
	"_summary":     {take: (*parser).summary},
	"_elements":    {take: (*parser).elements},
	"_include":     {take: (*parser).include, repeats: true, modifiers: []string{modifierIterate}},
	"_revinclude":  {take: (*parser).revInclude, repeats: true, modifiers: []string{modifierIterate}},
	paramPageToken: {take: (*parser).pageToken},
	paramFormat:    {take: (*parser).asIs},
	paramPretty:    {take: (*parser).asIs},
}

// historyControls are those of a history.
var historyControls = map[string]control{
	"_summary":     {take: (*parser).summary},
	"_elements":    {take: (*parser).elements},
	"_since":       {take: (*parser).since},
	"_at":          {take: (*parser).at},
	"_count":       {take: (*parser).count},
	paramPageToken: {take: (*parser).pageToken},
	paramFormat:    {take: (*parser).asIs},
	paramPretty:    {take: (*parser).asIs},
}

// readControls are those of a read.
var readControls = map[string]control{
	"_elements": {take: (*parser).elements},
	"_summary":  {take: (*parser).summary},
	paramFormat: {take: (*parser).asIs},
	paramPretty: {take: (*parser).asIs},
}

// types settles which types to search: that of the path, or those of _type, or all.
func (p *parser) types(values url.Values) error {
	given := nonEmpty(values[paramType])
	switch {
	case p.Type != "":
		p.query.Types = []string{p.Type}
		if len(given) > 0 && p.filters {
			return errors.New("is known for a search of several types only; here, the path says the type")
		}
		return nil
	case len(given) == 0 && p.Compartment != nil:
		p.query.Types = p.Compartment.Types()
		return nil
	case len(given) == 0, !p.filters:
		p.query.Types = namesOfTypes()
		return nil
	case len(given) > 1:
		return errors.New("is given more than once; separate types by commas")
	}
	for item := range strings.SplitSeq(given[0], ",") {
		name, err := typeNamed(item)
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
	if !digits.MatchString(value) {
		return "", fmt.Errorf("%s is not a number of items; give 0 to %d", r4.Quote(value), MaxCount)
	}
	count, err := strconv.Atoi(value)
	if err != nil || count > MaxCount {
		count = MaxCount // larger is clamped, however large
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
		return "", fmt.Errorf("%s is not a kind of total; give one of %s", r4.Quote(value), list(totals))
	}
	p.query.Total = total
	return value, nil
}

func (p *parser) pageToken(_, value string) (string, error) {
	if len(value) > maxToken {
		return "", errors.New("is longer than any page token of this server")
	}
	p.query.PageToken = value
	return value, nil
}

// asIs takes what is checked elsewhere.
func (p *parser) asIs(_, value string) (string, error) { return value, nil }

// WithoutPresentation leaves out the parameters that say how to answer, which
// every request may have.
func WithoutPresentation(values url.Values) url.Values {
	rest := maps.Clone(values)
	delete(rest, paramFormat)
	delete(rest, paramPretty)
	return rest
}
