package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/go-chi/chi/v5"
)

func TestRoutePath(t *testing.T) {
	for path, want := range map[string]string{
		"/":                   "/",
		"/a/":                 "/a",
		"/a%20b/":             "/a b",
		"/%5Fhistory":         "/_history",
		"/%61%5a%30%2d%2E%7E": "/aZ0-.~",
		"/a%2Fb/%5fc/":        "/a%2Fb/_c",
		"/a%2f%25%35F":        "/a%2f%255F",
		"/%255Fhistory":       "/%5Fhistory", // Path, as this is its default encoding
		"/%2A%24%3a%40%5F":    "/%2A%24%3a%40_",
		"/Jos%C3%A9%2F":       "/Jos%C3%A9%2F",
	} {
		parsed, err := url.ParseRequestURI(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := RoutePath(parsed); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestDecodeUnreserved(t *testing.T) {
	router := chi.NewRouter()
	router.Use(DecodeUnreserved)
	router.Get("/slot/{id}", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(PathParameter(r, "id"))) })
	for path, want := range map[string]string{"/slot/a": "a", "/sl%6Ft/%61%2Fb": "a/b", "/slot/a%255F%5F": "a%5F_", "/slot%2Fa": "404 page not found\n", "/slot/a/": "404 page not found\n"} {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if got := w.Body.String(); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
