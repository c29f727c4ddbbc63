package list

import (
	"regexp"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/fault"
)

// Bool reads the value of a filter on a boolean.
func Bool(value string) (is bool, problem string) {
	switch value {
	case "true":
		return true, ""
	case "false":
		return false, ""
	default:
		return false, fault.Quote(value) + " is not a boolean; give true or false"
	}
}

// UUID reads the value of a filter on a UUID; it is in lower case.
func UUID(value string) (id, problem string) {
	if !document.IsUUID(value) {
		return "", document.NotUUID(value)
	}
	return strings.ToLower(value), ""
}

// OneOf reads the value of a filter on one of some words.
func OneOf(value string, words ...string) (word, problem string) {
	for _, word := range words {
		if value == word {
			return value, ""
		}
	}
	return "", fault.Quote(value) + " is none of " + strings.Join(words, ", ")
}

// plusLost matches where the + of an offset was not escaped, and arrived as a space.
var plusLost = regexp.MustCompile(` (\d{2}:\d{2})$`)

// Instant reads the value of a filter on a time.
func Instant(value string) (at time.Time, problem string) {
	at, err := document.ParseInstant(plusLost.ReplaceAllString(value, "+$1"))
	if err != nil {
		return time.Time{}, err.Error()
	}
	return at, ""
}
