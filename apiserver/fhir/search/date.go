package search

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

// prefixes turn the range of a search value into the instants that match.
// R4 search.html#prefix; an instant is a point, so overlap is containment.
var prefixes = map[string]func(r Range, now time.Time) []Range{
	"eq": func(r Range, _ time.Time) []Range { return []Range{r} },
	"ne": func(r Range, _ time.Time) []Range { return []Range{{Until: r.From}, {From: r.Until}} },
	"gt": func(r Range, _ time.Time) []Range { return []Range{{From: r.Until}} },
	"sa": func(r Range, _ time.Time) []Range { return []Range{{From: r.Until}} },
	"ge": func(r Range, _ time.Time) []Range { return []Range{{From: r.From}} },
	"lt": func(r Range, _ time.Time) []Range { return []Range{{Until: r.From}} },
	"eb": func(r Range, _ time.Time) []Range { return []Range{{Until: r.From}} },
	"le": func(r Range, _ time.Time) []Range { return []Range{{Until: r.Until}} },
	"ap": approximately,
}

// approximately widens a range by a tenth of its distance from now.
func approximately(r Range, now time.Time) []Range {
	tenth := func(t time.Time) int64 {
		distance := (now.UnixMilli() - t.UnixMilli()) / 10
		return max(distance, -distance)
	}
	return []Range{{
		From:  time.UnixMilli(r.From.UnixMilli() - tenth(r.From)).UTC(),
		Until: time.UnixMilli(r.Until.UnixMilli() + tenth(r.Until)).UTC(),
	}}
}

// parseInstants reads a date with an optional prefix as a condition on instants,
// and returns it as it was understood.
func parseInstants(value string, now time.Time) ([]Range, string, error) {
	// A + that was not escaped has arrived as a space; dates have no spaces.
	value = strings.Replace(value, " ", "+", 1)
	prefix, date := "eq", value
	if len(value) >= 2 && 'a' <= value[0] && value[0] <= 'z' {
		prefix, date = value[:2], value[2:]
	}
	match, ok := prefixes[prefix]
	if !ok {
		return nil, "", fmt.Errorf("%s has the unknown prefix %s; known are %s", r4.Quote(value), r4.Quote(prefix), list(prefixes))
	}
	r, err := parseDate(date)
	if err != nil {
		return nil, "", err
	}
	return match(r, now), value, nil
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

// parseDate reads a FHIR date, dateTime or instant as the range that its precision
// gives it. Without a zone it is in UTC.
func parseDate(value string) (Range, error) {
	groups := datePattern.FindStringSubmatch(value)
	if groups == nil {
		return Range{}, fmt.Errorf("%s is not a date: write YYYY, YYYY-MM, YYYY-MM-DD or YYYY-MM-DDThh:mm[:ss[.fff]] with Z or a zone such as +02:00", r4.Quote(value))
	}
	number := func(group, otherwise int) int {
		if groups[group] == "" {
			return otherwise
		}
		n, _ := strconv.Atoi(groups[group]) // the pattern lets digits through only
		return n
	}
	year, month, day := number(groupYear, 0), number(groupMonth, 1), number(groupDay, 1)
	hour, minute, second := number(groupHour, 0), number(groupMinute, 0), number(groupSecond, 0)
	zone, zoneOK := parseZone(groups[groupZone])
	switch {
	case year == 0:
		return Range{}, notADate(value, "year", year)
	case month < 1 || month > 12:
		return Range{}, notADate(value, "month", month)
	case day < 1 || day > daysIn(year, month):
		return Range{}, notADate(value, "day", day)
	case hour > 23:
		return Range{}, notADate(value, "hour", hour)
	case minute > 59:
		return Range{}, notADate(value, "minute", minute)
	case second > 60: // 60 is a leap second
		return Range{}, notADate(value, "second", second)
	case !zoneOK:
		return Range{}, fmt.Errorf("%s is not a date: zone %s", r4.Quote(value), groups[groupZone])
	}
	fraction := groups[groupFraction]
	nanosecond, _ := strconv.Atoi((fraction + "000000000")[:9])
	from := time.Date(year, time.Month(month), day, hour, minute, second, nanosecond, zone)
	return Range{From: bound(from), Until: bound(precisionEnd(from, groups))}, nil
}

func notADate(value, part string, n int) error {
	return fmt.Errorf("%s is not a date: %s %d", r4.Quote(value), part, n)
}

// daysIn counts the days of a month: day 0 of the next one is its last.
func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// parseZone reads Z, ±hh:mm or nothing.
func parseZone(zone string) (*time.Location, bool) {
	if zone == "" || zone == "Z" {
		return time.UTC, true
	}
	hours, _ := strconv.Atoi(zone[1:3]) // the pattern lets digits through only
	minutes, _ := strconv.Atoi(zone[4:6])
	if hours > 14 || minutes > 59 {
		return nil, false
	}
	offset := (hours*60 + minutes) * 60
	if zone[0] == '-' {
		offset = -offset
	}
	return time.FixedZone("", offset), true
}

// precisionEnd is the first instant behind a date of the precision given.
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

// bound makes t fit for a Range, in which the zero time is infinite.
func bound(t time.Time) time.Time {
	if t = t.UTC(); t.IsZero() {
		return t.Add(1)
	}
	return t
}
