package fhir

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

func TestIsNotModified(t *testing.T) {
	rec := store.Record{Version: 3, Updated: time.Date(2026, 3, 1, 10, 0, 0, 500_000_000, time.UTC)}
	const (
		before = "Sun, 01 Mar 2026 09:59:59 GMT"
		same   = "Sun, 01 Mar 2026 10:00:00 GMT"
		after  = "Sun, 01 Mar 2026 10:00:01 GMT"
	)
	tests := map[string]struct {
		noneMatch, modifiedSince string
		want                     bool
	}{
		"nothing asked":                {"", "", false},
		"the version":                  {`W/"3"`, "", true},
		"the version, strong":          {`"3"`, "", true},
		"one of several":               {`W/"1", W/"3"`, "", true},
		"any version":                  {"*", "", true},
		"another version":              {`W/"2"`, "", false},
		"no version of ours":           {`"abc"`, "", false},
		"the bare version":             {"3", "", true},
		"one of several, bare":         {`W/"1", 3`, "", true},
		"another bare version":         {"13", "", false},
		"not modified since":           {"", same, true},
		"not modified since later":     {"", after, true},
		"modified since":               {"", before, false},
		"no date":                      {"", "yesterday", false},
		"the tag goes before the date": {`W/"2"`, after, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			header.Set("If-None-Match", test.noneMatch)
			header.Set("If-Modified-Since", test.modifiedSince)
			got, err := isNotModified(header, rec)
			if err != nil || got != test.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestParseConditions(t *testing.T) {
	tests := map[string]struct {
		match, noneMatch string
		want             conditions
		refused          bool
	}{
		"none":                    {"", "", conditions{}, false},
		"a version":               {`W/"3"`, "", conditions{ifMatch: etags{given: true, opaque: []string{"3"}}}, false},
		"versions":                {`"3",W/"4"`, "", conditions{ifMatch: etags{given: true, opaque: []string{"3", "4"}}}, false},
		"any":                     {"*", "", conditions{ifMatch: etags{given: true, any: true}}, false},
		"absent":                  {"", "*", conditions{absent: true}, false},
		"a bare number":           {"3", "", conditions{}, true},
		"absent in a version":     {"", `W/"3"`, conditions{}, true},
		"both":                    {"*", "*", conditions{}, true},
		"an item that is missing": {`W/"3",`, "", conditions{}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			header.Set("If-Match", test.match)
			header.Set("If-None-Match", test.noneMatch)
			got, err := parseConditions(header)
			if test.refused {
				if invalid := new(invalidError); !errors.As(err, &invalid) {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(conditions{}, etags{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVersionOf(t *testing.T) {
	tests := map[string]int64{
		"1": 1, "42": 42, "9223372036854775807": 9223372036854775807,
		"": noVersion, "0": noVersion, "-1": noVersion, "007": noVersion, "+1": noVersion,
		"1.0": noVersion, "a": noVersion, "9223372036854775808": noVersion,
	}
	for text, want := range tests {
		if got := versionOf(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func TestParsePreferences(t *testing.T) {
	tests := map[string]struct {
		prefer []string
		want   preferences
	}{
		"none":                  {nil, preferences{answer: answerRepresentation}},
		"minimal":               {[]string{"return=minimal"}, preferences{answer: answerMinimal}},
		"outcome":               {[]string{`return="OperationOutcome"`}, preferences{answer: answerOutcome}},
		"representation":        {[]string{"return=representation"}, preferences{answer: answerRepresentation}},
		"lenient":               {[]string{"handling=lenient"}, preferences{answer: answerRepresentation, handling: handlingLenient}},
		"strict":                {[]string{"handling=strict"}, preferences{answer: answerRepresentation, handling: handlingStrict}},
		"several":               {[]string{"respond-async, Return=minimal; foo=bar", "handling=lenient"}, preferences{answer: answerMinimal, handling: handlingLenient}},
		"what is not known":     {[]string{"return=nothing, depth-noroot"}, preferences{answer: answerRepresentation}},
		"nothing but commas":    {[]string{",;,"}, preferences{answer: answerRepresentation}},
		"a value that is empty": {[]string{"return=, handling="}, preferences{answer: answerRepresentation}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := parsePreferences(http.Header{"Prefer": test.prefer})
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(preferences{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
