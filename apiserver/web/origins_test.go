package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAllowOriginsExposesHeaders checks that a page of another origin can read the response headers
// that clients of the APIs need. Browsers hide all others but a few (Fetch §2.2.2), of which Expires
// and Last-Modified are used here.
func TestAllowOriginsExposesHeaders(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Origin", "https://app.example.org")
	w := httptest.NewRecorder()
	AllowOrigins([]string{"https://app.example.org"}).HandlerFunc(w, r)
	exposed := strings.Split(strings.ToLower(w.Header().Get("Access-Control-Expose-Headers")), ", ")
	readable := map[string]bool{}
	for _, name := range exposed {
		readable[name] = true
	}
	for _, name := range []string{
		"Accept-Patch", "Age", "Allow", "ETag", "Link", "Location", "Retry-After", "WWW-Authenticate", "X-Request-Id", "X-Correlation-Id",
		"Content-Location", "X-Progress", // of an export
		"RateLimit", "RateLimit-Policy",
	} {
		if !readable[strings.ToLower(name)] {
			t.Errorf("a page cannot read %s; exposed: %s", name, exposed)
		}
	}
}
