// Package eventgroup defines the fields and searchable values of event groups. It does not depend
// on HTTP or a storage engine.
package eventgroup

import (
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Type is the store type of event groups.
const Type = "EventGroup"

// IDField is the name of an event group's id field.
const IDField = "eventgroupId"

// The maximum number of characters of fields, and of bytes of extensions.
const (
	maxName        = 200
	maxCategory    = 64
	maxDescription = 10_000
	maxExtensions  = 16 << 10
)

// statuses are the valid statuses of an event group.
var statuses = []string{"active", "inactive", "archived"}

// Fields are the fields of an event group.
var Fields = schema.Fields{
	{Name: "name", Check: schema.Text(1, maxName), Required: true},
	{Name: "status", Check: schema.OneOf(statuses...), Required: true},
	{Name: "category", Check: schema.Text(0, maxCategory), Default: `""`},
	{Name: "description", Check: schema.Text(0, maxDescription), Default: `""`},
	{Name: "locationId", Check: schema.ID(), Default: `""`},
	{Name: "organizationId", Check: schema.ID(), Default: `""`},
	{Name: "extensions", Check: schema.AnyObject(maxExtensions), Default: "{}"},
	{Name: "createdAt", Check: schema.Instant(), Served: true},
	{Name: "updatedAt", Check: schema.Instant(), Served: true},
}

// Facets are the search parameters that have few distinct values.
var Facets = []string{"status"}

// Values returns the searchable values of an event group. Parameters have the names of fields.
func Values(content schema.Content) []store.IndexValue {
	var values []store.IndexValue
	token := func(name, code string) {
		if code != "" {
			values = append(values, store.IndexValue{Param: name, Value: store.Token{Code: code}})
		}
	}
	text := func(name string) {
		if folded := list.Fold(content.Text(name)); folded != "" {
			values = append(values, store.IndexValue{Param: name, Value: store.Text{Folded: folded, Original: folded}})
		}
	}
	text("name")
	token("status", content.Text("status"))
	text("status")
	token("category", content.Text("category"))
	text("category")
	text("description")
	token("locationId", strings.ToLower(content.Text("locationId")))
	token("organizationId", strings.ToLower(content.Text("organizationId")))
	return values
}

// Lists are the parameters of a list of event groups.
var Lists = list.Options[store.Condition]{
	SortBy: []string{"createdAt", "updatedAt", "name", "status", "category"},
	Filters: []list.Filter[store.Condition]{
		{Name: "name", Parse: contains("name"), Schema: list.TextSchema},
		{Name: "status", Parse: status, Schema: schema.CommaSeparated(statuses)},
		{Name: "category", Parse: is("category", false), Schema: schema.JSON{"type": "string", "minLength": 1}},
		{Name: "description", Parse: contains("description"), Schema: list.TextSchema},
		{Name: "organizationId", Parse: is("organizationId", true), Schema: schema.JSON{"type": "string", "minLength": 1}},
		{Name: "locationId", Parse: is("locationId", true), Schema: schema.JSON{"type": "string", "minLength": 1}},
	},
}

// Sorts are the sort orders of a list of event groups, by the value of sortBy, and the order without
// sortBy under "".
var Sorts = map[string]store.Sort{
	"":          {Field: store.SortCreated},
	"createdAt": {Field: store.SortCreated},
	"updatedAt": {Field: store.SortUpdated},
	"name":      {Field: store.SortText, Param: "name"},
	"status":    {Field: store.SortText, Param: "status"},
	"category":  {Field: store.SortText, Param: "category"},
}

// Partial are the sort fields that some event groups lack.
var Partial = []string{"category"}

type parse = func(value string) (store.Condition, string)

func contains(param string) parse {
	return func(value string) (store.Condition, string) {
		if value == "" {
			return store.All{}, "" // every text contains the empty one
		}
		return store.TextIs{Param: param, Match: store.Contains, Text: list.Fold(value)}, ""
	}
}

// is returns the filter on records with an equal value. If id is set, case is ignored.
func is(param string, id bool) parse {
	return func(value string) (store.Condition, string) {
		if value == "" {
			return nil, "the value is empty; send a value, or omit the parameter to select all event groups"
		}
		if id {
			value = strings.ToLower(value)
		}
		return store.TokenIs{Param: param, Code: &value}, ""
	}
}

// status parses one or several statuses, separated by commas.
func status(value string) (store.Condition, string) {
	words := strings.Split(value, ",")
	slices.Sort(words)
	var wanted store.Any
	for _, each := range slices.Compact(words) {
		word, problem := list.OneOf(each, statuses...)
		if problem != "" {
			return nil, problem
		}
		wanted = append(wanted, store.TokenIs{Param: "status", Code: &word})
	}
	return wanted, ""
}
