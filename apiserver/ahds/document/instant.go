package document

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/fault"
)

// The first year that is taken, and the first after the last.
const firstYear, endYear = 1900, 10_000

var (
	instantForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:(\d{2})(?:\.(\d+))?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$`)
	localForm   = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}([Tt]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?$`)
)

// ParseInstant reads a point in time with its offset (RFC 3339), to the microsecond.
func ParseInstant(text string) (time.Time, error) {
	parts := instantForm.FindStringSubmatch(text)
	switch {
	case parts == nil && localForm.MatchString(text):
		return time.Time{}, errors.New(fault.Quote(text) + " has no offset: write the whole time, with Z or an offset such as +02:00 at its end")
	case parts == nil:
		return time.Time{}, errors.New(fault.Quote(text) + " is not a time; write one like 2026-03-01T09:30:00+02:00")
	case parts[1] == "60":
		return time.Time{}, errors.New(fault.Quote(text) + " is a leap second, which is not taken: write the second before or after it")
	case len(parts[2]) > 6 && strings.Trim(parts[2][6:], "0") != "":
		return time.Time{}, errors.New(fault.Quote(text) + " is more exact than a microsecond: write at most six digits behind the second")
	}
	var at time.Time
	if err := at.UnmarshalText([]byte(strings.ToUpper(text))); err != nil { // stricter than time.Parse
		return time.Time{}, errors.New(fault.Quote(text) + " is not a time that there is: a part of it is out of range")
	}
	if year := at.UTC().Year(); year < firstYear || year >= endYear {
		return time.Time{}, errors.New(fault.Quote(text) + " is out of range: years from 1900 to 9999 are taken, in UTC")
	}
	return at, nil
}

// Instant takes points in time.
func Instant() Check {
	return text("a string with a time", func(at jsontext.Pointer, text string) fault.Faults {
		if _, err := ParseInstant(text); err != nil {
			return one(at, fault.CodeInvalidValue, err.Error())
		}
		return nil
	})
}

// Time is the point in time that a field has.
func (c Content) Time(field string) time.Time {
	at, err := ParseInstant(c.Text(field))
	if err != nil {
		return time.Time{}
	}
	return at
}

// Stamp writes a time of the service's own: UTC, with milliseconds.
func Stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
