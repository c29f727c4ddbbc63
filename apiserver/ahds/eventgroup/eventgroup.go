// Package eventgroup knows event groups: their fields and how lists find them. It knows
// neither HTTP nor storage engines.
package eventgroup

import (
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Type is the type of the records of event groups.
const Type = "EventGroup"

// IDField is the field with the id of an event group.
const IDField = "eventgroupId"

const (
	maxName        = 200
	maxCategory    = 64
	maxDescription = 10_000
	maxExtensions  = 16 << 10
)

// statuses are those that an event group can have.
var statuses = []string{"active", "inactive", "archived"}

// Fields are those of an event group.
var Fields = document.Fields{
	{Name: "name", Check: document.Text(1, maxName), Required: true},
	{Name: "status", Check: document.OneOf(statuses...), Required: true},
	{Name: "category", Check: document.Text(0, maxCategory), Default: `""`},
	{Name: "description", Check: document.Text(0, maxDescription), Default: `""`},
	{Name: "locationId", Check: document.ID(), Default: `""`},
	{Name: "organizationId", Check: document.ID(), Default: `""`},
	{Name: "extensions", Check: document.AnyObject(maxExtensions), Default: "{}"},
	{Name: "createdAt", Served: true},
	{Name: "updatedAt", Served: true},
}

// Facets are the parameters that have few values.
var Facets = []string{"status"}

// Entries are the searchable values of an event group, by the names of their fields.
func Entries(content document.Content) []store.Entry {
	var entries []store.Entry
	token := func(name, code string) {
		if code != "" {
			entries = append(entries, store.Entry{Param: name, Value: store.Token{Code: code}})
		}
	}
	text := func(name string) {
		if folded := list.Fold(content.Text(name)); folded != "" {
			entries = append(entries, store.Entry{Param: name, Value: store.Text{Folded: folded, Original: folded}})
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
	return entries
}

// Lists say what a list of event groups can be asked.
var Lists = list.Options[store.Condition]{
	SortBy: []string{"createdAt", "updatedAt", "name", "status", "category"},
	Filters: []list.Filter[store.Condition]{
		{Name: "name", Parse: contains("name")},
		{Name: "status", Parse: status},
		{Name: "category", Parse: is("category", false)},
		{Name: "description", Parse: contains("description")},
		{Name: "organizationId", Parse: is("organizationId", true)},
		{Name: "locationId", Parse: is("locationId", true)},
	},
}

// Sorts are the orders that a list of event groups can have.
var Sorts = map[string]store.Sort{
	"":          {Field: store.SortCreated},
	"createdAt": {Field: store.SortCreated},
	"updatedAt": {Field: store.SortUpdated},
	"name":      {Field: store.SortText, Param: "name"},
	"status":    {Field: store.SortText, Param: "status"},
	"category":  {Field: store.SortText, Param: "category"},
}

// Partial are the fields to sort by that an event group need not have.
var Partial = []string{"category"}

type parse = func(value string) (store.Condition, string)

func contains(param string) parse {
	return func(value string) (store.Condition, string) {
		if value == "" {
			return store.All{}, "" // is part of every text
		}
		return store.TextIs{Param: param, Match: store.Contains, Text: list.Fold(value)}, ""
	}
}

// is takes what equals a value; ids do so whatever their case.
func is(param string, id bool) parse {
	return func(value string) (store.Condition, string) {
		if value == "" {
			return nil, "this is empty; leave it out to take all"
		}
		if id {
			value = strings.ToLower(value)
		}
		return store.TokenIs{Param: param, Code: &value}, ""
	}
}

// status takes one status or several, with commas between them.
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
