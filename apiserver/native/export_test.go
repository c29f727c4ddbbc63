package native

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/paddock-health/paddock/apiserver/access"
)

// TestInvalidAfter checks that texts that Postgres cannot compare are refused before they reach it.
func TestInvalidAfter(t *testing.T) {
	h := New(Config{
		Admit: func(*http.Request, string) (Site, access.Caller, error) {
			return Site{Store: restoring{}}, access.Caller{Name: "alice"}, nil
		},
		Authorizer: everyone{},
		Log:        slog.New(slog.DiscardHandler),
	})
	for _, after := range []string{"", "Patient", "Patient/a\x00", "Pat\x00ient/a", "Patient/\xff"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/site/oak/native?after="+url.QueryEscape(after), nil))
		if w.Code != http.StatusBadRequest {
			t.Errorf("after %q: got %d %s, want 400", after, w.Code, w.Body)
		}
	}
}
