package list

import (
	"regexp"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
)

// Bool parses the value of a filter on a boolean. problem is the message for an invalid value.
func Bool(value string) (is bool, problem string) {
	switch value {
	case "true":
		return true, ""
	case "false":
		return false, ""
	default:
		return false, fielderror.Quote(value) + " is not a boolean; send true or false"
	}
}

// UUID parses the value of a filter on a UUID. id is in lower case.
func UUID(value string) (id, problem string) {
	if !schema.IsUUID(value) {
		return "", schema.NotUUID(value)
	}
	return strings.ToLower(value), ""
}

// OneOf parses the value of a filter that must be one of words.
func OneOf(value string, words ...string) (word, problem string) {
	for _, word := range words {
		if value == word {
			return value, ""
		}
	}
	return "", fielderror.Quote(value) + " is not supported; send one of " + strings.Join(words, ", ")
}

// plusLost matches an offset whose + was not escaped and is therefore a space.
var plusLost = regexp.MustCompile(` (\d{2}:\d{2})$`)

// Instant parses the value of a filter on a time.
func Instant(value string) (at time.Time, problem string) {
	at, err := schema.ParseInstant(plusLost.ReplaceAllString(value, "+$1"))
	if err != nil {
		return time.Time{}, err.Error()
	}
	return at, ""
}
