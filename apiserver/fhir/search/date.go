package search

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// prefixedDate is the prefix of a searched date, and the range that the date stands for.
type prefixedDate struct {
	prefix string
	dateRange
}

// dateRange is half-open: from ≤ t < until.
type dateRange struct{ from, until time.Time }

// floor returns the last microsecond that is not after t.
func floor(t time.Time) int64 { return t.UnixMicro() }

// ceil returns the first microsecond that is not before t.
func ceil(t time.Time) int64 { return t.Add(time.Microsecond - 1).UnixMicro() }

// dividedMicrosecond returns the area of the periods within the microsecond that contains t, if t is
// finer than the microseconds that are stored. If t is a whole number of them, it returns nil.
func dividedMicrosecond(t time.Time) []store.PeriodArea {
	if floor(t) == ceil(t) {
		return nil
	}
	return []store.PeriodArea{{From: atLeast(floor(t)), Until: atMost(ceil(t))}}
}

var datePattern = regexp.MustCompile(
	`^(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)?)?)?)?$`)

// The groups of datePattern.
const (
	groupYear = 1 + iota
	groupMonth
	groupDay
	groupHour
	groupMinute
	groupSecond
	groupFraction
	groupZone
)

// parsePrefixedDate parses a date with an optional prefix. The prefix ap becomes eq of a wider
// range. zone applies to dates and times without a zone; nil means UTC. R4 search.html#prefix.
func parsePrefixedDate(value string, now time.Time, zone *time.Location) (prefixedDate, error) {
	// An unescaped + arrives as a space, and dates have no spaces.
	value = strings.Replace(value, " ", "+", 1)
	prefix, date := "eq", value
	if len(value) >= 2 && 'a' <= value[0] && value[0] <= 'z' {
		prefix, date = value[:2], value[2:]
	}
	if _, ok := prefixAreas[prefix]; !ok {
		return prefixedDate{}, fmt.Errorf("%s has the unknown prefix %s; give one of %s", r4.Quote(value), r4.Quote(prefix), sortedNames(prefixAreas))
	}
	named, err := parseDate(date, zone)
	if prefix == "ap" {
		prefix, named = "eq", named.widen(now.UnixMicro())
	}
	return prefixedDate{prefix, named}, err
}

// widen returns the range with each end moved outward by a tenth of its distance from now.
func (r dateRange) widen(now int64) dateRange {
	tenth := func(t int64) int64 { return max(now-t, t-now) / 10 }
	from, until := floor(r.from), ceil(r.until)
	return dateRange{time.UnixMicro(from - tenth(from)), time.UnixMicro(until + tenth(until))}
}

// parseDate parses a FHIR date, dateTime or instant into the range of its precision. A time may
// also have no seconds. zone applies to dates and times without a zone; nil means UTC.
func parseDate(value string, zone *time.Location) (dateRange, error) {
	groups := datePattern.FindStringSubmatch(value)
	if groups == nil {
		return dateRange{}, fmt.Errorf("%s is not a date: write YYYY, YYYY-MM, YYYY-MM-DD or YYYY-MM-DDThh:mm[:ss[.fff]] with Z or a zone such as +02:00", r4.Quote(value))
	}
	number := func(group, otherwise int) int {
		if groups[group] == "" {
			return otherwise
		}
		n, _ := strconv.Atoi(groups[group]) // the pattern allows digits only
		return n
	}
	year, month, day := number(groupYear, 0), number(groupMonth, 1), number(groupDay, 1)
	hour, minute, second := number(groupHour, 0), number(groupMinute, 0), number(groupSecond, 0)
	in, zoneOK := parseZone(groups[groupZone], zone)
	switch {
	case year == 0:
		return dateRange{}, notADate(value, "year", year)
	case month < 1 || month > 12:
		return dateRange{}, notADate(value, "month", month)
	case day < 1 || day > daysIn(year, month):
		return dateRange{}, notADate(value, "day", day)
	case hour > 23:
		return dateRange{}, notADate(value, "hour", hour)
	case minute > 59:
		return dateRange{}, notADate(value, "minute", minute)
	case second > 60: // 60 is a leap second
		return dateRange{}, notADate(value, "second", second)
	case !zoneOK:
		return dateRange{}, fmt.Errorf("%s is not a date: there is no zone %s; write Z or an offset such as +02:00", r4.Quote(value), groups[groupZone])
	}
	nanosecond, _ := strconv.Atoi((groups[groupFraction] + "000000000")[:9])
	from := time.Date(year, time.Month(month), day, hour, minute, second, nanosecond, in)
	return dateRange{from, precisionEnd(from, groups)}, nil
}

func notADate(value, part string, n int) error {
	return fmt.Errorf("%s is not a date: there is no %s %d; correct the %s", r4.Quote(value), part, n, part)
}

// daysIn returns the number of days in a month: day 0 of the next month is its last day.
func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// parseZone parses Z or ±hh:mm. For an empty text it returns the zone in otherwise, or UTC if
// otherwise is nil. It returns false for an offset that no zone has.
func parseZone(text string, otherwise *time.Location) (*time.Location, bool) {
	switch text {
	case "":
		return cmp.Or(otherwise, time.UTC), true
	case "Z":
		return time.UTC, true
	}
	hours, _ := strconv.Atoi(text[1:3]) // the pattern allows digits only
	minutes, _ := strconv.Atoi(text[4:6])
	if hours > 14 || minutes > 59 {
		return nil, false
	}
	offset := (hours*60 + minutes) * 60
	if text[0] == '-' {
		offset = -offset
	}
	return time.FixedZone("", offset), true
}

// precisionEnd returns the first instant after the date that begins at from and has these groups.
func precisionEnd(from time.Time, groups []string) time.Time {
	switch {
	case groups[groupMonth] == "":
		return from.AddDate(1, 0, 0)
	case groups[groupDay] == "":
		return from.AddDate(0, 1, 0)
	case groups[groupHour] == "":
		return from.AddDate(0, 0, 1)
	case groups[groupSecond] == "":
		return from.Add(time.Minute)
	}
	precision := time.Second
	for range groups[groupFraction] {
		precision /= 10
	}
	return from.Add(precision)
}
