package fhir

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/web"
)

func TestParsePreconditions(t *testing.T) {
	tests := map[string]struct {
		match, noneMatch string
		want             preconditions
		refused          bool
	}{
		"none":                    {"", "", preconditions{}, false},
		"a version":               {`W/"3"`, "", preconditions{ifMatch: web.ETags{Given: true, Tags: []web.ETag{etag(3)}}}, false},
		"versions":                {`"3",W/"4"`, "", preconditions{ifMatch: web.ETags{Given: true, Tags: []web.ETag{{Opaque: "3"}, etag(4)}}}, false},
		"any":                     {"*", "", preconditions{ifMatch: web.ETags{Given: true, Any: true}}, false},
		"absent":                  {"", "*", preconditions{absent: true}, false},
		"a bare number":           {"3", "", preconditions{}, true},
		"absent in a version":     {"", `W/"3"`, preconditions{}, true},
		"both":                    {"*", "*", preconditions{}, true},
		"an item that is missing": {`W/"3",`, "", preconditions{}, true},
		"an empty If-Match":       {" ", "", preconditions{}, true},
		"an empty If-None-Match":  {"", " ", preconditions{}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			for name, value := range map[string]string{"If-Match": test.match, "If-None-Match": test.noneMatch} {
				if value != "" {
					header.Set(name, value)
				}
			}
			got, err := parsePreconditions(header)
			header.Set("If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT")
			if _, again := parsePreconditions(header); (again != nil) != (test.refused || !got.ifMatch.Given) {
				t.Errorf("with If-Unmodified-Since: error %v", again)
			}
			if test.refused {
				if problemOf(err).status != http.StatusBadRequest {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(preconditions{})); diff != "" {
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
		"none":                  {nil, preferences{returned: returnRepresentation}},
		"minimal":               {[]string{"return=minimal"}, preferences{returned: returnMinimal}},
		"outcome":               {[]string{`return="OperationOutcome"`}, preferences{returned: returnOutcome}},
		"representation":        {[]string{"return=representation"}, preferences{returned: returnRepresentation}},
		"lenient":               {[]string{"handling=lenient"}, preferences{returned: returnRepresentation, handling: handlingLenient}},
		"strict":                {[]string{"handling=strict"}, preferences{returned: returnRepresentation, handling: handlingStrict}},
		"several":               {[]string{"respond-async, Return=minimal; foo=bar", "handling=lenient"}, preferences{returned: returnMinimal, handling: handlingLenient, async: true}},
		"what is not known":     {[]string{"return=nothing, depth-noroot"}, preferences{returned: returnRepresentation}},
		"nothing but commas":    {[]string{",;,"}, preferences{returned: returnRepresentation}},
		"a value that is empty": {[]string{"return=, handling="}, preferences{returned: returnRepresentation}},
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
