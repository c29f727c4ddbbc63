package indexrow

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

// withParts is an extractor with the union name of family and given.
type withParts struct{ extractor }

func (withParts) Parts(_, param string) []string {
	if param == "name" {
		return []string{"family", "given"}
	}
	return nil
}

func textValue(param, original string) store.IndexValue {
	return store.IndexValue{Param: param, Value: store.Text{Folded: strings.ToLower(original), Original: original}}
}

// A text of a union that a part has too is stored once. The texts by which a record is sorted by the
// union are marked in the rows of the parts.
func TestUnions(t *testing.T) {
	x := indexerOf(t)
	x.Extractor = withParts{extractor{store.NoExtractor, []store.IndexValue{
		textValue("name", "Smith"), textValue("name", "Ada"), textValue("name", "Dr."), textValue("family", "Smith"), textValue("given", "Ada"),
	}}}
	rows := x.Rows("Patient", store.Body{})
	got := map[string][]bool{}
	for _, row := range rows.indexed {
		for _, param := range []string{"name", "family", "given"} {
			if row.key == TextKey("Patient", param) {
				got[param+" "+row.val] = []bool{
					row.facets&TextEndMark(true, false) != 0, row.facets&TextEndMark(true, true) != 0,
					row.facets&TextEndMark(false, false) != 0, row.facets&TextEndMark(false, true) != 0,
				}
			}
		}
	}
	want := map[string][]bool{"given ada": {true, false, true, true}, "name dr.": {false, false, false, false}, "family smith": {false, true, true, true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("first and last of the union, first and last of the parameter (-want +got):\n%s", diff)
	}
	if n := bytes.Count(rows.Vals, []byte("smith")); n != 1 {
		t.Errorf("vals has the text of a part and its union %d times", n)
	}
}

// TestManyTexts exceeds the time limit of go test if each text of a union is compared with each one of its parts.
func TestManyTexts(t *testing.T) {
	const many = 500_000
	values := make([]store.IndexValue, 0, 2*many)
	for i := range many {
		values = append(values, textValue("name", strconv.Itoa(i)), textValue("given", strconv.Itoa(i)))
	}
	x := indexerOf(t)
	x.Extractor = withParts{extractor{store.NoExtractor, values}}
	if rows := x.Rows("Patient", store.Body{}); len(rows.indexed) != many {
		t.Errorf("%d rows, want %d", len(rows.indexed), many)
	}
}

// likeMatches reports whether a text matches a LIKE pattern, which Postgres compares byte by byte.
func likeMatches(text, pattern []byte) bool {
	if len(pattern) == 0 {
		return len(text) == 0
	}
	switch pattern[0] {
	case '%':
		return likeMatches(text, pattern[1:]) || len(text) > 0 && likeMatches(text[1:], pattern)
	case '_':
		return len(text) > 0 && likeMatches(text[1:], pattern[1:])
	case '\\':
		pattern = pattern[1:]
	}
	return len(text) > 0 && text[0] == pattern[0] && likeMatches(text[1:], pattern[1:])
}

// Patterns match vals exactly if a text meets the condition.
func TestTextPatterns(t *testing.T) {
	x := indexerOf(t, textValue("name", "Smith"), textValue("name", "100%"), textValue("name", "a\\b_c"), textValue("city", "smithfield"),
		textValue("name", "bad\xffbytes"))
	rows := x.Rows("Patient", store.Body{})
	vals := rows.Vals
	for _, c := range []struct {
		is   store.TextIs
		want bool
	}{
		{store.TextIs{Param: "name", Text: "smi"}, true},
		{store.TextIs{Param: "name", Text: "smithf"}, false},
		{store.TextIs{Param: "name", Text: "mith"}, false},
		{store.TextIs{Param: "city", Text: "smithf"}, true},
		{store.TextIs{Param: "street", Text: "smith"}, false},
		{store.TextIs{Param: "name", Match: store.Exactly, Text: "Smith"}, true},
		{store.TextIs{Param: "name", Match: store.Exactly, Text: "smith"}, false},
		{store.TextIs{Param: "name", Match: store.Exactly, Text: "Smit"}, false},
		{store.TextIs{Param: "city", Match: store.Exactly, Text: "smithfield"}, true},
		{store.TextIs{Param: "name", Match: store.StartsExactly, Text: "Smit"}, true},
		{store.TextIs{Param: "name", Match: store.StartsExactly, Text: "smit"}, false},
		{store.TextIs{Param: "name", Text: "100%"}, true},
		{store.TextIs{Param: "name", Text: "1_0"}, false},
		{store.TextIs{Param: "name", Text: "a%"}, false},
		{store.TextIs{Param: "name", Text: `a\b_`}, true},
		{store.TextIs{Param: "name", Text: "bad\xffb"}, true},
		{store.TextIs{Param: "name", Text: ""}, true},
		{store.TextIs{Param: "street", Text: ""}, false},
	} {
		got := false
		for _, pattern := range TextPatterns(TextKey("Patient", c.is.Param), c.is) {
			got = got || likeMatches(vals, pattern)
		}
		if got != c.want {
			t.Errorf("%+v: %t, want %t", c.is, got, c.want)
		}
		if s := TextSignature(TextKey("Patient", c.is.Param), c.is.Text); c.want && c.is.Match == store.StartsWith && rows.Signature.With(s) != rows.Signature {
			t.Errorf("%+v: the record lacks a bit of the signature", c.is)
		}
	}
	if !likeMatches(vals, PresencePattern(TextKey("Patient", "city"))) || likeMatches(vals, PresencePattern(TextKey("Patient", "street"))) {
		t.Error("presence of city or of street is wrong")
	}
}

// The first and the last text of a key are found by what comes before them, and all end at KeyEnd.
func TestTextStart(t *testing.T) {
	vals := indexerOf(t, textValue("name", "b"), textValue("name", "a"), textValue("name", "C"), textValue("city", "x")).Rows("Patient", store.Body{}).Vals
	for greatest, want := range map[bool]string{false: "a", true: "c"} {
		start, distance := TextStart(TextKey("Patient", "name"), greatest)
		_, after, _ := bytes.Cut(vals, start)
		got, _, _ := bytes.Cut(after[distance-len(start):], TextEnd)
		if string(got) != want {
			t.Errorf("greatest %t: %q, want %q", greatest, got, want)
		}
	}
	start, _ := TextStart(TextKey("Patient", "name"), false)
	_, all, _ := bytes.Cut(vals, start)
	all, _, _ = bytes.Cut(all, KeyEnd)
	all = slices.Concat(start, all)
	for text, want := range map[string]bool{"a": true, "c": true, "C": false, "x": false} {
		if got := likeMatches(all, ContainedPattern(text)); got != want {
			t.Errorf("%q is among the texts: %t, want %t", text, got, want)
		}
	}
}

// The texts of a parameter need not follow each other.
func TestTextsInAnyOrder(t *testing.T) {
	text := func(param, text string) store.IndexValue {
		return store.IndexValue{Param: param, Value: store.Text{Folded: text, Original: text}}
	}
	want := indexerOf(t, text("city", "a"), text("city", "b"), text("city", "e"), text("given", "c"), text("given", "d")).Rows("Patient", store.Body{})
	got := indexerOf(t, text("city", "b"), text("given", "d"), text("city", "a"), text("given", "c"), text("city", "e")).Rows("Patient", store.Body{})
	if diff := cmp.Diff(want.indexed, got.indexed, cmp.AllowUnexported(indexedTextRow{})); diff != "" || !bytes.Equal(want.Vals, got.Vals) {
		t.Errorf("vals %q, want %q; rows (-want +got):\n%s", got.Vals, want.Vals, diff)
	}
}
