package audit

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSequence shows that a sequence has the entries that were appended, whatever changes from one to
// the next, and that parsing an entry changes none that was parsed before.
func TestSequence(t *testing.T) {
	at := time.Date(2026, 11, 23, 1, 2, 3, 4000, time.UTC)
	full := Entry{
		Time: at, ID: 1, Site: "1042", Request: "r", Correlation: "c", Caller: "a", Subject: User, Issuer: "clinic", Address: "::1", API: "fhir",
		Interaction: "search-type", Action: Execute, Method: "GET", Type: "Patient", Records: RecordsOf("Patient/a", "Patient/b", "Person/a", "Patient/c"),
		Status: 404, Rule: "x", BreakGlass: true, Requests: 7, Parameters: []string{"name", "_count"},
	}
	empty, longer, other, odd := Entry{Time: at.Add(time.Minute), ID: 2, Method: "GET", Status: 200}, full, full, full
	longer.ID, longer.Parameters = 3, []string{"name", "_count", "_sort"}
	other.ID, other.Parameters, other.Records = 4, []string{"family"}, RecordsOf("Patient/d")
	odd.ID, odd.Caller, odd.Records = 5, "\"é\"\n", RecordsOf("Patient/\"é\"", "Patient/x")
	want := []Entry{full, empty, full, full, longer, other, odd, empty, empty, other}
	var text []byte
	var before *Entry
	for i := range want {
		text = append(want[i].AppendAfter(text, before), '\n')
		before = &want[i]
	}
	var got []Entry
	var e Entry
	for line := range strings.Lines(string(text)) {
		var err error
		if e, err = ParseAfter([]byte(line), e); err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	for i := range got {
		if len(got[i].Parameters) == 0 {
			got[i].Parameters = nil
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, text)
	}
	if repeated := full.AppendAfter(nil, &full); len(repeated) > 80 {
		t.Errorf("an entry like the one before takes %d bytes: %s", len(repeated), repeated)
	}
	if _, err := Parse(slices.Clone(full.AppendAfter(nil, &empty))); err == nil {
		t.Error("a line with less than an entry is parsed as one")
	}
}
