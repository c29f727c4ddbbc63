package r4

import (
	"testing"
	"time"
)

func TestMicroseconds(t *testing.T) {
	for text, want := range map[string][2]string{
		"2020":                         {"2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"},
		"2020-02":                      {"2020-02-01T00:00:00Z", "2020-03-01T00:00:00Z"},
		"2020-02-28":                   {"2020-02-28T00:00:00Z", "2020-02-29T00:00:00Z"},
		"9999":                         {"9999-01-01T00:00:00Z", "9999-12-31T23:59:60Z"},
		"0001":                         {"0001-01-01T00:00:00Z", "0002-01-01T00:00:00Z"},
		"2020-01-01T00:00:00+14:00":    {"2019-12-31T10:00:00Z", "2019-12-31T10:00:01Z"},
		"2020-01-01T10:00:00.5Z":       {"2020-01-01T10:00:00.5Z", "2020-01-01T10:00:00.6Z"},
		"2020-01-01T10:00:00.123Z":     {"2020-01-01T10:00:00.123Z", "2020-01-01T10:00:00.124Z"},
		"2020-01-01T10:00:00.1234567Z": {"2020-01-01T10:00:00.123456Z", "2020-01-01T10:00:00.123457Z"},
		"2016-12-31T23:59:60Z":         {"2017-01-01T00:00:00Z", "2017-01-01T00:00:01Z"},
	} {
		from, until, ok := Microseconds([]byte(text))
		if got := [2]string{written(from), written(until)}; !ok || got != [2]string{normal(t, want[0]), normal(t, want[1])} {
			t.Errorf("%s is %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "x", "2020-13", "2021-02-29", "2020-01-01T10:00:00", "2020-01-01T10:00Z"} {
		if _, _, ok := Microseconds([]byte(text)); ok {
			t.Errorf("%q is taken for a date", text)
		}
	}
}

func written(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.RFC3339Nano) }

// normal is how a time is written; the second after the last of a year may be 60.
func normal(t *testing.T, text string) string {
	if text == "9999-12-31T23:59:60Z" {
		return "10000-01-01T00:00:00Z"
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.Format(time.RFC3339Nano)
}
