package native

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
)

// unwritable is the storage of an audit log that cannot be written.
type unwritable struct{ audit.Storage }

func (unwritable) Append(context.Context, []*audit.Entry) error { return errors.New("full") }
func (unwritable) Trim(context.Context, time.Duration) error    { return nil }

// restoring is a store that accepts all records.
type restoring struct{ Store }

func (restoring) Restore(_ context.Context, records []store.Dumped) ([]store.Restored, error) {
	return make([]store.Restored, len(records)), nil
}

type everyone struct{}

func (everyone) Authorize(context.Context, access.Caller, access.Tenant, access.Action) error {
	return nil
}

// TestUnrecordedImport shows that the response to an import that cannot be recorded says that records
// may be stored.
func TestUnrecordedImport(t *testing.T) {
	d := dumped()
	for query, written := range map[string]bool{"": true, "?dryRun=true": false} {
		log := audit.NewLog("oak", unwritable{}, audit.Settings{})
		h := New(Config{
			Admit: func(r *http.Request, _ string) (Site, access.Caller, error) {
				audit.From(r.Context()).At(audit.Sink{ID: "oak", Log: log})
				return Site{Store: restoring{}}, access.Caller{Name: "alice"}, nil
			},
			Authorizer: everyone{},
			CheckBody:  func(store.Key, store.Body) []Problem { return nil },
			Audit:      &audit.Auditor{Now: time.Now},
			Log:        slog.New(slog.DiscardHandler),
		})
		r := httptest.NewRequest(http.MethodPost, "/site/oak/native"+query, bytes.NewReader(appendLine(nil, &d)))
		r.Header.Set("Content-Type", ndjson)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		log.Close(t.Context())
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "the write may have succeeded") != written {
			t.Errorf("%q: got %d %s, want the write to be mentioned: %t", query, w.Code, w.Body, written)
		}
	}
}
