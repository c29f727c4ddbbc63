package sandbox

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

// TestRemoveRecords checks that a record on a later page is deleted although all records of the first page are
// refused: they refer to it.
func TestRemoveRecords(t *testing.T) {
	records := []string{"r1", "r2", "r3"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, id := path.Split(strings.TrimPrefix(r.URL.Path, "/fhir/"))
		switch {
		case r.Method == http.MethodDelete && slices.Contains(records, "r3") && id != "r3":
			w.WriteHeader(http.StatusConflict)
		case r.Method == http.MethodDelete:
			records = slices.DeleteFunc(records, func(each string) bool { return each == id })
			w.WriteHeader(http.StatusNoContent)
		case kind+id != "Patient":
			fmt.Fprint(w, `{}`)
		case r.URL.Query().Get("_page") == "" && len(records) > 2:
			fmt.Fprintf(w, `{"link":[{"relation":"next","url":"https://elsewhere.example.org/fhir/Patient?_page=2"}],"entry":[%s]}`, entries(records[:2]))
		case r.URL.Query().Get("_page") == "":
			fmt.Fprintf(w, `{"entry":[%s]}`, entries(records))
		default:
			fmt.Fprintf(w, `{"entry":[%s]}`, entries(records[2:]))
		}
	}))
	defer server.Close()
	api, err := siteapi.New(siteapi.Config{BaseURL: server.URL, Token: func(context.Context) (string, error) { return "token", nil }})
	if err != nil {
		t.Fatal(err)
	}
	if deleted, err := removeRecords(t.Context(), api); deleted != 3 || err != nil {
		t.Errorf("%d deleted, error %v; want 3", deleted, err)
	}
}

// entries returns the entries of a searchset.
func entries(ids []string) string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = fmt.Sprintf(`{"resource":{"id":%q}}`, id)
	}
	return strings.Join(all, ",")
}

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
