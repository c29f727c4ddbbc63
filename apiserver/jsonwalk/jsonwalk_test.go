package jsonwalk

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestMembers(t *testing.T) {
	tests := map[string]struct {
		text    string
		options []jsontext.Options
		want    []string
		fails   bool
	}{
		"an empty object":       {` { } `, nil, nil, false},
		"members":               {`{"a" : 1.0,"b":{"c":[]} , "d":"x"}`, nil, []string{`a "a" 1.0`, `b "b" {"c":[]}`, `d "d" "x"`}, false},
		"an escaped name":       {`{"\u0061":null}`, nil, []string{`a "\u0061" null`}, false},
		"text after the object": {`{"a":1} and more`, nil, []string{`a "a" 1`}, false},
		"an array":              {`["a",1]`, nil, nil, true},
		"a string":              {`"a"`, nil, nil, true},
		"nothing":               {``, nil, nil, true},
		"cut off":               {`{"a":1,"b"`, nil, []string{`a "a" 1`}, true},
		"closed as an array":    {`{"a":1]`, nil, []string{`a "a" 1`}, true},
		"a repeated name":       {`{"a":1,"a":2}`, nil, []string{`a "a" 1`}, true},
		"a repeated name, let":  {`{"a":1,"a":2}`, []jsontext.Options{jsontext.AllowDuplicateNames(true)}, []string{`a "a" 1`, `a "a" 2`}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			var failed error
			for m, err := range Members([]byte(test.text), test.options...) {
				if failed = err; err == nil {
					got = append(got, fmt.Sprintf("%s %s %s", m.Name, m.RawName, m.Value))
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" || (failed != nil) != test.fails {
				t.Error(diff, failed)
			}
		})
	}
	for m, err := range Members([]byte(`{"a":1,"b"`)) {
		if m.Name != "a" || err != nil {
			t.Errorf("got %q and %v before what is invalid, want a", m.Name, err)
		}
		break
	}
}

func TestElements(t *testing.T) {
	tests := map[string]struct {
		text  string
		want  []string
		fails bool
	}{
		"an empty array": {`[]`, nil, false},
		"elements":       {`[1, {"a":2} ,"x"]`, []string{"1", `{"a":2}`, `"x"`}, false},
		"an object":      {`{"a":1}`, nil, true},
		"cut off":        {`[1,`, []string{"1"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			var failed error
			for value, err := range Elements([]byte(test.text)) {
				if failed = err; err == nil {
					got = append(got, string(value))
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" || (failed != nil) != test.fails {
				t.Error(diff, failed)
			}
		})
	}
}
