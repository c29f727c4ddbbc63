package smoketest

import (
	"strings"
	"testing"
)

func TestAnswers(t *testing.T) {
	tests := map[string]struct {
		want   func(int, []byte) error
		status int
		body   string
		// refusal is a part of the error; none, the answer is right.
		refusal string
	}{
		"created":                {want: succeeded, status: 201},
		"forbidden":              {want: succeeded, status: 403, body: "no right", refusal: "status 403, want 2xx: no right"},
		"redirected":             {want: succeeded, status: 302, refusal: "status 302"},
		"gone":                   {want: isGone, status: 410},
		"never there":            {want: isGone, status: 404},
		"still there":            {want: isGone, status: 200, refusal: "status 200"},
		"found":                  {want: foundOne, status: 200, body: `{"entry":[{}]}`},
		"not found":              {want: foundOne, status: 200, body: `{}`, refusal: "got 0 records"},
		"found twice":            {want: foundOne, status: 200, body: `{"entry":[{},{}]}`, refusal: "got 2 records"},
		"an answer of a proxy's": {want: foundOne, status: 200, body: `<html>`, refusal: "parse the response to the search"},
		"a failed search":        {want: foundOne, status: 503, body: `{"entry":[{}]}`, refusal: "status 503"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.want(test.status, []byte(test.body))
			if test.refusal == "" && err != nil {
				t.Fatalf("got error %v, want none", err)
			}
			if test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)) {
				t.Fatalf("got error %v, want one with %q", err, test.refusal)
			}
		})
	}
}
