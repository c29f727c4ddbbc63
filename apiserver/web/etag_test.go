package web

import (
	"errors"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testSyntax also accepts a number without quotes.
var testSyntax = regexp.MustCompile(`^(?:(W/)?"([^"]*)"|([0-9]+))$`)

func TestParseETags(t *testing.T) {
	strong, weak := ETag{Opaque: "3"}, ETag{Opaque: "3", Weak: true}
	tests := map[string]struct {
		values []string
		want   ETags
		wrong  string
	}{
		"none":             {nil, ETags{}, ""},
		"empty":            {[]string{" "}, ETags{}, ""},
		"any":              {[]string{"*"}, ETags{Given: true, Any: true}, ""},
		"strong":           {[]string{`"3"`}, ETags{Given: true, Tags: []ETag{strong}}, ""},
		"weak":             {[]string{`W/"3"`}, ETags{Given: true, Tags: []ETag{weak}}, ""},
		"the third group":  {[]string{"3"}, ETags{Given: true, Tags: []ETag{strong}}, ""},
		"several":          {[]string{`"3", W/"3"`, `*`}, ETags{Given: true, Any: true, Tags: []ETag{strong, weak}}, ""},
		"no quotes":        {[]string{`"3", abc`}, ETags{}, "abc"},
		"a missing item":   {[]string{`"3",`}, ETags{}, ""},
		"a lower-case w/":  {[]string{`w/"3"`}, ETags{}, `w/"3"`},
		"a quote too many": {[]string{`"3""`}, ETags{}, `"3""`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseETags(http.Header{"If-Match": test.values}, "If-Match", testSyntax)
			var wrong *ETagError
			if errors.As(err, &wrong) {
				if test.want.Given || wrong.Item != test.wrong || wrong.Header != "If-Match" {
					t.Errorf("got %+v, want %+v", wrong, test)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

func TestParsePrecondition(t *testing.T) {
	parse := func(values ...string) (ETags, error) {
		return ParsePrecondition(http.Header{"If-Match": values}, "If-Match", testSyntax)
	}
	if got, err := parse(); got.Given || err != nil {
		t.Errorf("no header field: got %+v, error %v", got, err)
	}
	if got, err := parse(`"3"`); !got.Given || err != nil {
		t.Errorf("a version: got %+v, error %v", got, err)
	}
	for _, values := range [][]string{{""}, {" "}, {`"3"`, ""}} {
		if _, err := parse(values...); !errors.As(err, new(*ETagError)) {
			t.Errorf("%q: error %v", values, err)
		}
	}
}

func TestMatch(t *testing.T) {
	for name, test := range map[string]struct {
		value        string
		strong, weak bool
	}{
		"none":         {"", false, false},
		"any":          {"*", true, true},
		"the same":     {`"3"`, true, true},
		"the weak one": {`W/"3"`, false, true},
		"another":      {`"4", "33"`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			tags, err := ParseETags(http.Header{"If-Match": {test.value}}, "If-Match", testSyntax)
			if err != nil {
				t.Fatal(err)
			}
			if strong, weak := tags.MatchStrong(ETag{Opaque: "3"}), tags.MatchWeak(ETag{Opaque: "3"}); strong != test.strong || weak != test.weak {
				t.Errorf("got strong %v, weak %v; want %v, %v", strong, weak, test.strong, test.weak)
			}
			if !test.strong && tags.MatchStrong(ETag{Opaque: "3", Weak: true}) {
				t.Error("a weak tag matches by strong comparison")
			}
		})
	}
}

func TestIsNotModified(t *testing.T) {
	updated := time.Date(2026, 3, 1, 10, 0, 0, 500_000_000, time.UTC)
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
			got, err := IsNotModified(header, testSyntax, ETag{Weak: true, Opaque: "3"}, updated)
			if err != nil || got != test.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	if got, err := IsNotModified(http.Header{"If-Modified-Since": {after}}, testSyntax, ETag{}, time.Time{}); got || err != nil {
		t.Errorf("without a time of the last change: got %v, %v", got, err)
	}
	if _, err := IsNotModified(http.Header{"If-None-Match": {"abc"}}, testSyntax, ETag{}, updated); err == nil {
		t.Error("an item that is not an ETag is accepted")
	}
}
