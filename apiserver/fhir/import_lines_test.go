package fhir

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/web"
)

// TestLineReader checks that the limit of a line does not count its line break.
func TestLineReader(t *testing.T) {
	for body, want := range map[string][]string{
		"1234\n1234":           {"1234", "1234"},
		"1234\r\n\n1234\r\n":   {"1234", "", "1234"},
		"12345\n12\n":          {"too long", "12"},
		"1234\r\r\n12345":      {"too long", "too long"},
		"\r\r\r\r\r\r\r\n12\n": {"too long", "12"},
	} {
		lines, err := newLineReader(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), 4)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			line, err := lines.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if errors.As(err, new(*web.TooLargeError)) {
				line = []byte("too long")
			} else if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(line))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", body, diff)
		}
	}
}
