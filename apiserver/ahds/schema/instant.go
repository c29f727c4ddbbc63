package schema

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
)

// Supported years are from firstYear to before endYear, in UTC.
const firstYear, endYear = 1900, 10_000

var (
	instantForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:(\d{2})(?:\.(\d+))?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$`)
	localForm   = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}([Tt]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?$`)
)

// ParseInstant parses an RFC 3339 time with an offset and a precision of up to microseconds. Errors
// are messages for clients.
func ParseInstant(text string) (time.Time, error) {
	parts := instantForm.FindStringSubmatch(text)
	switch {
	case parts == nil && localForm.MatchString(text):
		return time.Time{}, errors.New(fielderror.Quote(text) + " has no offset; send date, time, and Z or an offset such as +02:00")
	case parts == nil:
		return time.Time{}, errors.New(fielderror.Quote(text) + " is not a time; send one like 2026-03-01T09:30:00+02:00")
	case parts[1] == "60":
		return time.Time{}, errors.New(fielderror.Quote(text) + " is a leap second, which is not supported; send the second before or after it")
	case len(parts[2]) > 6 && strings.Trim(parts[2][6:], "0") != "":
		return time.Time{}, errors.New(fielderror.Quote(text) + " is more precise than a microsecond; send at most six decimal places of the second")
	}
	var at time.Time
	if err := at.UnmarshalText([]byte(strings.ToUpper(text))); err != nil { // stricter than time.Parse
		return time.Time{}, errors.New(fielderror.Quote(text) + " does not exist: its month, day, hour, minute or second is out of range; send an existing time")
	}
	if year := at.UTC().Year(); year < firstYear || year >= endYear {
		return time.Time{}, errors.New(fielderror.Quote(text) + " is out of range; send a time in the years 1900 to 9999, in UTC")
	}
	return at, nil
}

// Instant returns a check for times that ParseInstant parses.
func Instant() Check {
	return text(JSON{"format": "date-time"}, "a string with a time", func(at jsontext.Pointer, text string) fielderror.Errors {
		if _, err := ParseInstant(text); err != nil {
			return one(at, fielderror.CodeInvalidValue, err.Error())
		}
		return nil
	})
}

// Time returns the time value of a field, and the zero time if it has none.
func (c Content) Time(field string) time.Time {
	at, err := ParseInstant(c.Text(field))
	if err != nil {
		return time.Time{}
	}
	return at
}

// Stamp formats a time that the service sets, as RFC 3339 in UTC with milliseconds.
func Stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
