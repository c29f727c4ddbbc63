package sandbox

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

func TestRemoveSlots(t *testing.T) {
	for name, test := range map[string]struct {
		results string
		deleted int
		problem string
	}{
		"all":              {`{"status":204},{"status":204}`, 2, ""},
		"one is gone":      {`{"status":404,"problem":{"code":"not_found","detail":"no slot"}},{"status":204}`, 1, ""},
		"one is not taken": {`{"status":204},{"status":409,"problem":{"code":"conflict","detail":"it is held"}}`, 1, "delete slot s2: status 409 (conflict): it is held"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					fmt.Fprint(w, `{"data":[{"availabilitySlotId":"s1"},{"availabilitySlotId":"s2"}],"meta":{"totalPages":1}}`)
					return
				}
				fmt.Fprintf(w, `{"data":[%s]}`, test.results)
			}))
			defer server.Close()
			api, err := siteapi.New(siteapi.Config{BaseURL: server.URL, Token: func(context.Context) (string, error) { return "token", nil }})
			if err != nil {
				t.Fatal(err)
			}
			deleted, err := removeSlots(t.Context(), api)
			if deleted != test.deleted || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %d deleted and %v, want %d and %q", deleted, err, test.deleted, test.problem)
			}
		})
	}
}
