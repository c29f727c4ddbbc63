package webhook

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/events"
)

// EventLists are the parameters of a list of webhook events. Contract 4.2.
var EventLists = list.Options[Test]{
	SortBy: sortBy,
	Filters: []list.Filter[Test]{
		{Name: "description", Parse: contains("description"), Schema: list.TextSchema},
		{Name: "eventType", Parse: eventType, Schema: schema.OneOf(events.TypeNames()...).Schema},
		{Name: "isEnabled", Parse: boolean("isEnabled"), Schema: list.BoolSchema},
	},
}

// Lists are the parameters of a list of webhooks.
var Lists = list.Options[Test]{
	SortBy: sortBy,
	Filters: []list.Filter[Test]{
		{Name: "description", Parse: contains("description"), Schema: list.TextSchema},
		{Name: "eventType", Parse: eventType, Schema: schema.OneOf(events.TypeNames()...).Schema},
		{Name: "isActive", Parse: boolean("isActive"), Schema: list.BoolSchema},
		{Name: "webhookUrl", Parse: contains("webhookUrl"), Schema: list.TextSchema},
	},
}

type parse = func(value string) (Test, string)

// contains returns the filter that selects resources whose field contains a value, ignoring case.
func contains(field string) parse {
	return func(value string) (Test, string) {
		part := list.Fold(value)
		return func(r Resource) bool { return strings.Contains(list.Fold(r.Content.Text(field)), part) }, ""
	}
}

func eventType(value string) (Test, string) {
	word, problem := list.OneOf(value, events.TypeNames()...)
	return func(r Resource) bool { return r.Content.Text("eventType") == word }, problem
}

func boolean(field string) parse {
	return func(value string) (Test, string) {
		is, problem := list.Bool(value)
		return func(r Resource) bool { return r.Content.Bool(field) == is }, problem
	}
}
