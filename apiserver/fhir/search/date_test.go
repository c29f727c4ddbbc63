package search

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
)

func TestParseDate(t *testing.T) {
	tests := map[string]struct{ from, until string }{
		"2026":                          {"2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		"2024-02":                       {"2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		"2024-02-29":                    {"2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"},
		"2026-12-31":                    {"2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z"},
		"2026-03-01T10:15":              {"2026-03-01T10:15:00Z", "2026-03-01T10:16:00Z"},
		"2026-03-01T10:15Z":             {"2026-03-01T10:15:00Z", "2026-03-01T10:16:00Z"},
		"2026-03-01T10:15:30Z":          {"2026-03-01T10:15:30Z", "2026-03-01T10:15:31Z"},
		"2026-03-01T10:15:30+05:30":     {"2026-03-01T04:45:30Z", "2026-03-01T04:45:31Z"},
		"2026-03-01T10:15:30-08:00":     {"2026-03-01T18:15:30Z", "2026-03-01T18:15:31Z"},
		"2026-03-01T10:15:30.5Z":        {"2026-03-01T10:15:30.5Z", "2026-03-01T10:15:30.6Z"},
		"2026-03-01T10:15:30.123Z":      {"2026-03-01T10:15:30.123Z", "2026-03-01T10:15:30.124Z"},
		"2026-03-01T10:15:30.12345678Z": {"2026-03-01T10:15:30.12345678Z", "2026-03-01T10:15:30.12345679Z"},
		"2016-12-31T23:59:60Z":          {"2017-01-01T00:00:00Z", "2017-01-01T00:00:01Z"},
		"9999":                          {"9999-01-01T00:00:00Z", "10000-01-01T00:00:00Z"},
		"0001":                          {"0001-01-01T00:00:00.000000001Z", "0002-01-01T00:00:00Z"},
	}
	for value, test := range tests {
		got, err := parseDate(value)
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		if diff := cmp.Diff([]string{test.from, test.until},
			[]string{got.From.Format(time.RFC3339Nano), got.Until.Format(time.RFC3339Nano)}); diff != "" {
			t.Errorf("%s: %s", value, diff)
		}
	}
}

func TestParseDateRefuses(t *testing.T) {
	tests := map[string]string{
		"2026-00":                         "month 0",
		"2026-13":                         "month 13",
		"2026-02-29":                      "day 29",
		"2026-04-31":                      "day 31",
		"2026-01-00":                      "day 0",
		"0000":                            "year 0",
		"2026-01-01T24:00":                "hour 24",
		"2026-01-01T10:60":                "minute 60",
		"2026-01-01T10:00:61Z":            "second 61",
		"2026-01-01T10:00:00+15:00":       "zone +15:00",
		"2026-01-01T10:00:00+05:60":       "zone +05:60",
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
			want = r4.Quote(value) + " is not a date: " + part
		}
		_, err := parseDate(value)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", value, err, want)
		}
	}
}

// TestPrefixes tries each prefix with instants before, at and behind the ends of
// the search value's range.
func TestPrefixes(t *testing.T) {
	const value = "2026-03-01T10:15:30Z"
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
		ranges, _, err := parseInstants(prefix+value, now)
		if err != nil {
			t.Errorf("%s: %v", prefix, err)
			continue
		}
		var got []bool
		for _, instant := range instants {
			got = append(got, anyContains(ranges, instant))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", prefix, diff)
		}
	}
	for _, value := range []string{"xx2026", "g2026", "eq", "eqeq2026"} {
		if _, _, err := parseInstants(value, now); err == nil {
			t.Errorf("%s was taken", value)
		}
	}
}

func TestApproximatelyWidensByATenth(t *testing.T) {
	tests := map[string]Range{
		// 10 days before now, and its end 9 days before now.
		"ap2026-02-19T12:00:00Z": {
			From:  time.Date(2026, 2, 18, 12, 0, 0, 0, time.UTC),
			Until: time.Date(2026, 2, 20, 12, 0, 0, 900_000_000, time.UTC),
		},
		// In the future.
		"ap2026-03-11T12:00:00Z": {
			From:  time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC),
			Until: time.Date(2026, 3, 12, 12, 0, 2, -900_000_000, time.UTC),
		},
	}
	for value, want := range tests {
		got, _, err := parseInstants(value, now)
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		if diff := cmp.Diff([]Range{want}, got); diff != "" {
			t.Errorf("%s: %s", value, diff)
		}
	}
	if got, _, err := parseInstants("ap0001", now); err != nil || got[0].From.Year() > -200 {
		t.Errorf("ap0001: %v, %v", got, err)
	}
}

func TestBeforeTheFirstInstant(t *testing.T) {
	ranges, _, err := parseInstants("lt0001-01-01T00:00:00Z", now)
	if err != nil {
		t.Fatal(err)
	}
	if anyContains(ranges, now) {
		t.Error("nothing is before the first instant")
	}
}

func TestPlusArrivesAsSpace(t *testing.T) {
	want, _, err := parseInstants("ge2026-03-01T10:15:30+02:00", now)
	if err != nil {
		t.Fatal(err)
	}
	got, understood, err := parseInstants("ge2026-03-01T10:15:30 02:00", now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if understood != "ge2026-03-01T10:15:30+02:00" {
		t.Errorf("understood as %s", understood)
	}
}

func anyContains(ranges []Range, t time.Time) bool {
	for _, r := range ranges {
		if (r.From.IsZero() || !t.Before(r.From)) && (r.Until.IsZero() || t.Before(r.Until)) {
			return true
		}
	}
	return false
}
