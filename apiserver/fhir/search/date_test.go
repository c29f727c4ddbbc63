package search

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

func TestParseDate(t *testing.T) {
	brisbane := time.FixedZone("", 10*3600)
	tests := map[string]struct {
		zone        *time.Location
		from, until string
	}{
		"2026":                          {nil, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		"2024-02":                       {nil, "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		"2024-02-29":                    {nil, "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"},
		"2024-03-01":                    {brisbane, "2024-02-29T14:00:00Z", "2024-03-01T14:00:00Z"},
		"2026-12-31":                    {nil, "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z"},
		"2026-03-01T10:15":              {nil, "2026-03-01T10:15:00Z", "2026-03-01T10:16:00Z"},
		"2026-03-02T10:15":              {brisbane, "2026-03-02T00:15:00Z", "2026-03-02T00:16:00Z"},
		"2026-03-01T10:15Z":             {brisbane, "2026-03-01T10:15:00Z", "2026-03-01T10:16:00Z"},
		"2026-03-01T10:15:30Z":          {nil, "2026-03-01T10:15:30Z", "2026-03-01T10:15:31Z"},
		"2026-03-01T10:15:30+05:30":     {brisbane, "2026-03-01T04:45:30Z", "2026-03-01T04:45:31Z"},
		"2026-03-01T10:15:30-08:00":     {nil, "2026-03-01T18:15:30Z", "2026-03-01T18:15:31Z"},
		"2026-03-01T10:15:30.5Z":        {nil, "2026-03-01T10:15:30.5Z", "2026-03-01T10:15:30.6Z"},
		"2026-03-01T10:15:30.123Z":      {nil, "2026-03-01T10:15:30.123Z", "2026-03-01T10:15:30.124Z"},
		"2026-03-01T10:15:30.123456Z":   {nil, "2026-03-01T10:15:30.123456Z", "2026-03-01T10:15:30.123457Z"},
		"2026-03-01T10:15:30.12345678Z": {nil, "2026-03-01T10:15:30.12345678Z", "2026-03-01T10:15:30.12345679Z"},
		"2016-12-31T23:59:60Z":          {nil, "2017-01-01T00:00:00Z", "2017-01-01T00:00:01Z"},
		"9999":                          {nil, "9999-01-01T00:00:00Z", "10000-01-01T00:00:00Z"},
		"0001":                          {nil, "0001-01-01T00:00:00Z", "0002-01-01T00:00:00Z"},
	}
	for value, test := range tests {
		got, err := parseDate(value, test.zone)
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		text := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
		if diff := cmp.Diff([]string{test.from, test.until}, []string{text(got.from), text(got.until)}); diff != "" {
			t.Errorf("%s: %s", value, diff)
		}
	}
}

func TestParseDateRefuses(t *testing.T) {
	tests := map[string]string{
		"2026-00":                         "month 0; correct the month",
		"2026-13":                         "month 13; correct the month",
		"2026-02-29":                      "day 29; correct the day",
		"2026-04-31":                      "day 31; correct the day",
		"2026-01-00":                      "day 0; correct the day",
		"0000":                            "year 0; correct the year",
		"2026-01-01T24:00":                "hour 24; correct the hour",
		"2026-01-01T10:60":                "minute 60; correct the minute",
		"2026-01-01T10:00:61Z":            "second 61; correct the second",
		"2026-01-01T10:00:00+15:00":       "zone +15:00; write Z or an offset such as +02:00",
		"2026-01-01T10:00:00+05:60":       "zone +05:60; write Z or an offset such as +02:00",
		"":                                "",
		"26":                              "",
		"2026-1":                          "",
		"2026-01-01T10":                   "",
		"2026-01-01Z":                     "",
		"2026-01-01T10:00:00.Z":           "",
		"2026-01-01 10:00":                "",
		"2026-01-01T10:00:00.0000000001Z": "",
		"2026-01-01T10:00:00z":            "",
		"２０２６":                            "",
	}
	const syntax = " is not a date: write YYYY, YYYY-MM, YYYY-MM-DD or YYYY-MM-DDThh:mm[:ss[.fff]] with Z or a zone such as +02:00"
	for value, part := range tests {
		want := r4.Quote(value) + syntax
		if part != "" {
			want = r4.Quote(value) + " is not a date: there is no " + part
		}
		_, err := parseDate(value, nil)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", value, err, want)
		}
	}
}

// TestRule05DateInstants tries each prefix of _lastUpdated with instants before, at and after the
// ends of the searched range.
func TestRule05DateInstants(t *testing.T) {
	at := func(offset time.Duration) time.Time {
		return time.Date(2026, 3, 1, 10, 15, 30, 0, time.UTC).Add(offset)
	}
	instants := []time.Time{at(-time.Millisecond), at(0), at(999 * time.Millisecond), at(time.Second)}
	tests := map[string][]bool{
		"":   {false, true, true, false},
		"eq": {false, true, true, false},
		"ne": {true, false, false, true},
		"gt": {false, false, false, true},
		"sa": {false, false, false, true},
		"ge": {false, true, true, true},
		"lt": {true, false, false, false},
		"eb": {true, false, false, false},
		"le": {true, true, true, false},
	}
	for prefix, want := range tests {
		var got []bool
		for _, instant := range instants {
			got = append(got, anyContains(instantsOf(t, prefix+"2026-03-01T10:15:30Z"), instant))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", prefix, diff)
		}
	}
	for _, value := range []string{"xx2026", "g2026", "eq", "eqeq2026"} {
		if _, err := (&parser{}).parseInstants(value); err == nil {
			t.Errorf("%s was taken", value)
		}
	}
	if anyContains(instantsOf(t, "lt0001-01-01T00:00:00Z"), now) {
		t.Error("nothing is before the first instant")
	}
	if diff := cmp.Diff(instantsOf(t, "ge2026-03-01T10:15:30+02:00"), instantsOf(t, "ge2026-03-01T10:15:30 02:00")); diff != "" {
		t.Errorf("a + that arrives as a space: %s", diff)
	}
}

func instantsOf(t *testing.T, value string) []store.TimeRange {
	t.Helper()
	ranges, err := (&parser{Options: Options{Now: now}}).parseInstants(value)
	if err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return ranges
}

func anyContains(ranges []store.TimeRange, t time.Time) bool {
	for _, r := range ranges {
		if r.Contains(t) {
			return true
		}
	}
	return false
}

// TestRule05DatePeriods compares all pairs of periods with ends on a few days, including open ones,
// with the formulas of R4 for the ranges [a, b) and [l, h).
func TestRule05DatePeriods(t *testing.T) {
	holds := map[string]func(a, b, l, h int64) bool{
		"eq": func(a, b, l, h int64) bool { return a <= l && h <= b },
		"ne": func(a, b, l, h int64) bool { return a > l || h > b },
		"gt": func(_, b, _, h int64) bool { return h > b },
		"lt": func(a, _, l, _ int64) bool { return l < a },
		"ge": func(a, b, l, h int64) bool { return h > b || a <= l && h <= b },
		"le": func(a, b, l, h int64) bool { return l < a || a <= l && h <= b },
		"sa": func(_, b, l, _ int64) bool { return l >= b },
		"eb": func(a, _, _, h int64) bool { return h <= a },
	}
	day := func(n int) int64 { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC).UnixMicro() }
	ends := []int64{store.TheBeginning, day(3), day(4) - 1, day(4), day(4) + 1, day(5) - 1, day(5), day(5) + 1, day(6), store.TheEnd}
	a, b := day(4), day(5)
	for prefix, want := range holds {
		condition := conditionOf(t, "PractitionerRole", "date="+prefix+"2026-03-04")
		for i, l := range ends {
			for _, h := range ends[i+1:] {
				query := Query{Where: condition}
				got := query.Matches([]store.IndexValue{{Param: "date", Value: store.Period{From: l, Until: h}}})
				if got != want(a, b, l, h) {
					t.Errorf("%s: [%d, %d): got %t", prefix, l, h, got)
				}
			}
		}
	}
}

func TestRule05DatePrecision(t *testing.T) {
	for _, test := range []struct {
		query, stored string
		want          bool
	}{
		{"birthdate=1980", "1980-05-03", true},
		{"birthdate=1980-05-03", "1980", false},
		{"birthdate=eq1980-05", "1980-05-03", true},
		{"birthdate=ne1980", "1980-05-03", false},
		{"birthdate=ne1980-05-03", "1980", true},
		{"birthdate=1980-05-03T00:00", "1980-05-03", false},
		{"birthdate=ap1980", "1984-05-03", true},
		{"birthdate=ap1980", "1990-05-03", false},
		{"birthdate=ap1980,1990", "1990-05-03", true},
	} {
		for _, zone := range []*time.Location{nil, time.FixedZone("", 10*3600)} {
			query, err := Parse(values(t, test.query), Options{Type: "Patient", Now: now, Zone: zone})
			if err != nil {
				t.Fatal(err)
			}
			if got := query.Matches([]store.IndexValue{stored(t, "birthdate", test.stored)}); got != test.want {
				t.Errorf("%s for %s: got %t", test.query, test.stored, got)
			}
		}
	}
}

// stored returns the index value of a date, a dateTime or an instant in a record.
func stored(t *testing.T, param, value string) store.IndexValue {
	t.Helper()
	from, until, ok := r4.Microseconds([]byte(value))
	if !ok {
		t.Fatalf("%s is not a date", value)
	}
	return store.IndexValue{Param: param, Value: store.Period{From: from, Until: until}}
}

// TestRule05DateFinerThanMicroseconds compares dates that are finer than microseconds with stored
// ones, which are indexed as whole microseconds. All matches are found. Of the others, only some in
// the same microsecond are found.
func TestRule05DateFinerThanMicroseconds(t *testing.T) {
	const second = "2026-03-01T10:15:30"
	fractions := []string{".4", ".499999", ".5", ".50", ".500000", ".5000001", ".500001", ".500002", ".6"}
	tests := map[string]string{ // a character for each of the fractions: 1 for found
		"eq.5000001": "000011000",
		"eq.5000009": "000011000",
		"eq.5000000": "000011000",
		"ne.5000001": "111111111",
		"ne.5000009": "111111111",
		"gt.5000001": "001111111",
		"gt.5000009": "001100111", // ends with the microsecond
		"gt.500000":  "001100111",
		"lt.5000001": "111111000",
		"lt.5000000": "110000000", // begins with the microsecond
		"lt.500000":  "110000000",
		"ge.5000001": "001111111",
		"ge.5000009": "001111111",
		"le.5000001": "111111000",
		"le.5000000": "110011000",
		"sa.5000001": "000011111",
		"sa.5000009": "000000111", // ends with the microsecond
		"eb.5000001": "110011000",
		"eb.5000000": "110000000", // begins with the microsecond
	}
	for prefix, want := range tests {
		query, err := Parse(values(t, "death-date="+prefix[:2]+second+prefix[2:]+"Z"), Options{Type: "Patient", Now: now})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, fraction := range fractions {
			if query.Matches([]store.IndexValue{stored(t, "death-date", second+fraction+"Z")}) {
				got += "1"
			} else {
				got += "0"
			}
		}
		if got != want {
			t.Errorf("%s of %v: got %s, want %s", prefix, fractions, got, want)
		}
	}
}

// TestRule05InstantFinerThanMicroseconds compares the times of records, which are exact, with
// instants finer than microseconds.
func TestRule05InstantFinerThanMicroseconds(t *testing.T) {
	at := func(fraction time.Duration) time.Time {
		return time.Date(2026, 3, 1, 10, 15, 30, int(500*time.Millisecond+fraction), time.UTC)
	}
	instants := []time.Time{at(-time.Millisecond), at(0), at(time.Millisecond)}
	for prefix, want := range map[string][]bool{
		"eq": {false, false, false},
		"ne": {true, true, true},
		"gt": {false, false, true},
		"lt": {true, true, false},
		"ge": {false, false, true},
		"le": {true, true, false},
		"sa": {false, false, true},
		"eb": {true, true, false},
	} {
		var got []bool
		for _, instant := range instants {
			got = append(got, anyContains(instantsOf(t, prefix+"2026-03-01T10:15:30.5000001Z"), instant))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", prefix, diff)
		}
	}
}

func TestRule05DateZone(t *testing.T) {
	for value, want := range map[string]string{
		"death-date=2026-03-01T10:15":  "2026-03-01T00:15:00Z",
		"death-date=2026-03-01T10:15Z": "2026-03-01T10:15:00Z",
		"death-date=2026-03-01":        "2026-03-01T00:00:00Z", // as a date in a record is understood
	} {
		query, err := Parse(values(t, value), Options{Type: "Patient", Now: now, Zone: time.FixedZone("", 10*3600)})
		if err != nil {
			t.Fatal(err)
		}
		got := query.Where.(store.All)[0].(store.SinglePeriodIn).Areas[0].From.Least
		if text := time.UnixMicro(got).UTC().Format(time.RFC3339); text != want {
			t.Errorf("%s begins at %s, want %s", value, text, want)
		}
	}
}

// TestRule05InstantZone shows that searched times and dates without a zone are in the site's zone
// for _lastUpdated.
func TestRule05InstantZone(t *testing.T) {
	begin := time.Date(2026, 2, 28, 14, 0, 0, 0, time.UTC)
	day := store.TimeRange{From: begin, Until: begin.AddDate(0, 0, 1)}
	opts := options(Options{Zone: time.FixedZone("", 10*3600)})
	query, err := Parse(values(t, "_lastUpdated=2026-03-01"), opts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(store.All{store.UpdatedIn(day)}, query.Where); diff != "" {
		t.Error(diff)
	}
	history, err := ParseHistory(values(t, "_since=2026-03-01&_at=2026-03-01"), opts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]store.TimeRange{{From: begin}, day}, append([]store.TimeRange{{From: history.Since}}, history.At...)); diff != "" {
		t.Error(diff)
	}
}

func TestApproximatelyWidensByATenth(t *testing.T) {
	date := func(day, hour int) time.Time { return time.Date(2026, 2, day, hour, 0, 0, 0, time.UTC) }
	tests := map[string]store.TimeRange{
		// 10 days before now, and its end 10 days less a second.
		"ap2026-02-19T12:00:00Z": {From: date(18, 12), Until: date(20, 12).Add(900 * time.Millisecond)},
		// In the future.
		"ap2026-03-11T12:00:00Z": {From: date(38, 12), Until: date(40, 12).Add(1100 * time.Millisecond)},
	}
	for value, want := range tests {
		if diff := cmp.Diff([]store.TimeRange{want}, instantsOf(t, value)); diff != "" {
			t.Errorf("%s: %s", value, diff)
		}
	}
	if got := instantsOf(t, "ap0001"); got[0].From.Year() > -200 {
		t.Errorf("ap0001: %v", got)
	}
}

func TestTimeRangeBeforeTheFirstYear(t *testing.T) {
	for value, want := range map[string]store.TimeRange{"lt0001": {Until: time.Time{}.Add(1)}, "ge0001": {From: time.Time{}.Add(1)}} {
		got, err := TimeRange(value, time.Time{}, nil)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, %s", value, err, diff)
		}
	}
}

func conditionOf(t *testing.T, typeName, query string) store.Condition {
	t.Helper()
	q, err := Parse(values(t, query), Options{Type: typeName, Now: now, Bases: []string{"https://h.example/fhir"}})
	if err != nil {
		t.Fatal(fmt.Errorf("%s?%s: %w", typeName, query, err))
	}
	all, ok := q.Where.(store.All)
	if !ok || len(all) != 1 {
		t.Fatalf("%s?%s: got %v, want one condition", typeName, query, q.Where)
	}
	return all[0]
}
