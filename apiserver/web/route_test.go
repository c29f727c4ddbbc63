package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMethodsFind(t *testing.T) {
	methods := Methods[string]{http.MethodGet: "read", http.MethodDelete: "remove"}
	for method, want := range map[string]string{"GET": "read", "HEAD": "read", "DELETE": "remove"} {
		if got, err := methods.Find(method); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", method, got, err, want)
		}
	}
	var wrong *MethodError
	if _, err := methods.Find("PUT"); !errors.As(err, &wrong) || strings.Join(wrong.Allowed, " ") != "DELETE GET HEAD" {
		t.Errorf("PUT: got %v, want the allowed methods DELETE, GET and HEAD", err)
	}
}

func TestPathParameter(t *testing.T) {
	for path, test := range map[string]struct{ matched, want string }{
		"/a%20b":   {"a b", "a b"},     // the router matches Path
		"/a%2Fb":   {"a%2Fb", "a/b"},   // the router matches RawPath
		"/a%252Fb": {"a%2Fb", "a%2Fb"}, // Path, as this is its default encoding
	} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.SetPathValue("id", test.matched)
		if got := PathParameter(r, "id"); got != test.want {
			t.Errorf("%s: got %q, want %q", path, got, test.want)
		}
	}
}

func TestRespond(t *testing.T) {
	for method, body := range map[string]string{http.MethodGet: "text", http.MethodHead: ""} {
		w := httptest.NewRecorder()
		Respond(w, httptest.NewRequest(method, "/", nil), http.StatusCreated, "text/plain", []byte("text"))
		header := w.Header()
		if w.Code != http.StatusCreated || w.Body.String() != body || header.Get("Content-Length") != "4" || header.Get("Content-Type") != "text/plain" || header.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("%s: got %d, %q, %v", method, w.Code, w.Body, header)
		}
	}
}
