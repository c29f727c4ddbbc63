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
)

// parameter is one known parameter.
type parameter struct {
	// repeats says that it may be given several times.
	repeats bool
	// parse takes one value into the query and returns it as it was understood.
	parse func(p *parser, value string) (string, error)
}

// Parameter is a parameter that chooses records, as a CapabilityStatement lists it.
type Parameter struct {
	Name string
	// Type is a code of the value set search-param-type.
	Type string
	// Definition is the canonical URL of HL7's definition for a type.
	Definition string
}

// ParametersOf lists the parameters that choose records of a type, by name.
func ParametersOf(typeName string) []Parameter {
	const definitions = "http://hl7.org/fhir/SearchParameter/"
	return []Parameter{
		{"_id", "token", definitions + "Resource-id"},
		{"_lastUpdated", "date", definitions + "Resource-lastUpdated"},
		{"identifier", "token", definitions + typeName + "-identifier"},
	}
}

// searchParameters are those of a search on any type.
var searchParameters = map[string]parameter{
	"_id":          {repeats: true, parse: (*parser).id},
	"_lastUpdated": {repeats: true, parse: (*parser).lastUpdated},
	"identifier":   {repeats: true, parse: token("identifier")},
	"_sort":        {parse: (*parser).sort},
	"_count":       {parse: (*parser).count},
	"_total":       {parse: (*parser).total},
	"_summary":     {parse: (*parser).summary},
	"_elements":    {parse: (*parser).elements},
	paramPageToken: {parse: (*parser).pageToken},
	paramFormat:    {parse: (*parser).presentation},
	paramPretty:    {parse: (*parser).presentation},
}

// criteriaParameters are those that choose records, for conditional interactions.
var criteriaParameters = map[string]parameter{
	"_id":          searchParameters["_id"],
	"_lastUpdated": searchParameters["_lastUpdated"],
	"identifier":   searchParameters["identifier"],
}

// historyParameters are those of a history.
var historyParameters = map[string]parameter{
	"_since":       {parse: (*parser).since},
	"_at":          {parse: (*parser).at},
	"_count":       {parse: (*parser).count},
	paramPageToken: {parse: (*parser).pageToken},
	paramFormat:    {parse: (*parser).presentation},
	paramPretty:    {parse: (*parser).presentation},
}

// readParameters are those of a read.
var readParameters = map[string]parameter{
	"_elements": {parse: (*parser).elements},
	paramFormat: {parse: (*parser).presentation},
	paramPretty: {parse: (*parser).presentation},
}

// id takes a list of ids; what is given several times must agree.
func (p *parser) id(value string) (string, error) {
	ids, err := alternatives(value)
	if err != nil {
		return "", err
	}
	for i, id := range ids {
		if !r4.ValidID(id) {
			return "", fmt.Errorf("%s is not an id: %s", r4.Quote(id), r4.IDPattern)
		}
		ids[i] = strings.ToLower(id)
	}
	if p.query.IDs == nil {
		p.query.IDs = ids
	} else {
		p.query.IDs = slices.DeleteFunc(p.query.IDs, func(id string) bool { return !slices.Contains(ids, id) })
	}
	return value, nil
}

func (p *parser) lastUpdated(value string) (string, error) {
	ranges, understood, err := p.instants(value)
	p.query.Updated = append(p.query.Updated, ranges)
	return understood, err
}

// instants takes dates with prefixes, one of which must hold.
func (p *parser) instants(value string) ([]Range, string, error) {
	items, err := alternatives(value)
	if err != nil {
		return nil, "", err
	}
	var ranges []Range
	for i, item := range items {
		found, understood, err := parseInstants(item, p.Now)
		if err != nil {
			return nil, "", err
		}
		ranges = append(ranges, found...)
		items[i] = understood
	}
	return ranges, strings.Join(items, ","), nil
}

// since takes an instant, or a date for its beginning. R4 http.html#history.
func (p *parser) since(value string) (string, error) {
	value = strings.Replace(value, " ", "+", 1) // a + that was not escaped
	r, err := parseDate(value)
	p.query.Since = r.From
	return value, err
}

// at takes the period that a date names. R4 http.html#history.
func (p *parser) at(value string) (string, error) {
	ranges, understood, err := p.instants(value)
	p.query.At = ranges
	return understood, err
}

var sortFields = map[string]SortField{"_id": SortID, "_lastUpdated": SortUpdated}

func (p *parser) sort(value string) (string, error) {
	name, descending := strings.CutPrefix(value, "-")
	if name == "date" && p.SortByDate {
		name = "_lastUpdated"
	}
	field, ok := sortFields[name]
	if !ok {
		return "", fmt.Errorf("%s is not a sort key of %s; give one of %s, with a leading - for descending order",
			r4.Quote(value), p.Type, list(sortFields))
	}
	p.query.Sort = Sort{Field: field, Descending: descending}
	return value, nil
}

var digits = regexp.MustCompile(`^[0-9]+$`)

func (p *parser) count(value string) (string, error) {
	if !digits.MatchString(value) {
		return "", fmt.Errorf("%s is not a number of items; give 0 to %d", r4.Quote(value), MaxCount)
	}
	count, err := strconv.Atoi(value)
	if err != nil || count > MaxCount {
		count = MaxCount // larger is clamped, however large
	}
	p.query.Count = count
	return strconv.Itoa(count), nil
}

var totals = map[string]Total{"none": TotalNone, "estimate": TotalWhenFree, "accurate": TotalAccurate}

func (p *parser) total(value string) (string, error) {
	total, ok := totals[value]
	if !ok {
		return "", fmt.Errorf("%s is not a kind of total; give one of %s", r4.Quote(value), list(totals))
	}
	p.query.Total = total
	return value, nil
}

func (p *parser) summary(value string) (string, error) {
	switch value {
	case "false":
	case "count":
		p.totalOnly = true
	default:
		return "", fmt.Errorf("%s is not supported; give count or false", r4.Quote(value))
	}
	return value, nil
}

var elementName = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

func (p *parser) elements(value string) (string, error) {
	names, err := alternatives(value)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		element := strings.TrimPrefix(name, p.Type+".")
		if !elementName.MatchString(element) {
			return "", fmt.Errorf("%s is not an element at the top of %s", r4.Quote(name), p.Type)
		}
		p.query.Elements = append(p.query.Elements, element)
	}
	return value, nil
}

func (p *parser) pageToken(value string) (string, error) {
	if len(value) > maxToken {
		return "", errors.New("is longer than any page token of this server")
	}
	p.query.PageToken = value
	return value, nil
}

// presentation takes what content negotiation has already checked.
func (p *parser) presentation(value string) (string, error) { return value, nil }

// WithoutPresentation leaves out the parameters that say how to answer, which
// every request may have.
func WithoutPresentation(values url.Values) url.Values {
	rest := maps.Clone(values)
	delete(rest, paramFormat)
	delete(rest, paramPretty)
	return rest
}
