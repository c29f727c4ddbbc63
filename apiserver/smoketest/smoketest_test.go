package smoketest

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
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

func TestPermanent(t *testing.T) {
	failed := errors.New("failed")
	tests := map[string]struct {
		status int
		err    error
		want   bool
	}{
		"success":                 {status: 201},
		"an unknown Site":         {status: 404, err: failed},
		"a right on its way":      {status: 403, err: failed},
		"unavailable":             {status: 503, err: failed},
		"no connection":           {err: failed},
		"a refused token":         {status: 401, err: failed, want: true},
		"another API":             {status: 405, err: failed, want: true},
		"no token file":           {err: fmt.Errorf("read the token: %w", fs.ErrNotExist), want: true},
		"HTTP instead of HTTPS":   {err: fmt.Errorf("send: %w", http.ErrSchemeMismatch), want: true},
		"gone, which is expected": {status: 410},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := permanent(test.status, test.err); got != test.want {
				t.Errorf("permanent: got %t, want %t", got, test.want)
			}
		})
	}
}
