package slot

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// TestWriteCalendarText checks that no text of a client can break a line of a calendar.
func TestWriteCalendarText(t *testing.T) {
	s := in(t)
	s.Content["serviceType"] = jsontext.Value(`{"code":"a","display":"one\r\ntwo\rthree\u0000\u001b\u007f\tfour"}`)
	var text bytes.Buffer
	if err := WriteCalendar(&text, "first\r\nsecond\r\u0001", []Event{s.Event("demo", 1, midnight, midnight.Add(time.Hour))}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.ReplaceAll(text.String(), "\r\n ", ""), "\r\n")
	for _, want := range []string{`X-WR-CALNAME:first\nsecond\n`, "SUMMARY:Free: one\\ntwo\\nthree\tfour"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in %q", want, lines)
		}
	}
}
