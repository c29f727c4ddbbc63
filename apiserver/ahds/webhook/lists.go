package webhook

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
)

// EventLists say what a list of webhook events can be asked. Contract 4.2.
var EventLists = list.Options[Test]{
	SortBy: sortBy,
	Filters: []list.Filter[Test]{
		{Name: "description", Parse: contains("description")},
		{Name: "eventType", Parse: eventType},
		{Name: "isEnabled", Parse: boolean("isEnabled")},
	},
}

// Lists say what a list of webhooks can be asked.
var Lists = list.Options[Test]{
	SortBy: sortBy,
	Filters: []list.Filter[Test]{
		{Name: "description", Parse: contains("description")},
		{Name: "eventType", Parse: eventType},
		{Name: "isActive", Parse: boolean("isActive")},
		{Name: "webhookUrl", Parse: contains("webhookUrl")},
	},
}

type parse = func(value string) (Test, string)

// contains takes texts that have a part, whatever its case.
func contains(field string) parse {
	return func(value string) (Test, string) {
		part := list.Fold(value)
		return func(r Resource) bool { return strings.Contains(list.Fold(r.Content.Text(field)), part) }, ""
	}
}

func eventType(value string) (Test, string) {
	word, problem := list.OneOf(value, eventTypes...)
	return func(r Resource) bool { return r.Content.Text("eventType") == word }, problem
}

func boolean(field string) parse {
	return func(value string) (Test, string) {
		is, problem := list.Bool(value)
		return func(r Resource) bool { return r.Content.Bool(field) == is }, problem
	}
}
