package native

import (
	"bytes"
	"context"
	"errors"
	"io"
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
		r := httptest.NewRequest(http.MethodPost, "/site/oak/native"+query, bytes.NewReader(appendLine(nil, &d, 0)))
		r.Header.Set("Content-Type", ndjson)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		log.Close(t.Context())
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "the write may have succeeded") != written {
			t.Errorf("%q: got %d %s, want the write to be mentioned: %t", query, w.Code, w.Body, written)
		}
	}
}

// TestRepeatedParameters shows that a repeated parameter is refused, instead of one of its values taken.
func TestRepeatedParameters(t *testing.T) {
	h := New(Config{
		Admit: func(*http.Request, string) (Site, access.Caller, error) {
			return Site{Store: restoring{}}, access.Caller{Name: "alice"}, nil
		},
		Authorizer: everyone{},
		Audit:      &audit.Auditor{Now: time.Now},
		Log:        slog.New(slog.DiscardHandler),
	})
	for _, request := range []struct{ method, query, name string }{
		{http.MethodPost, "dryRun=false&dryRun=true", "dryRun"},
		{http.MethodGet, "since=2031-01-01T00:00:00Z&since=2032-01-01T00:00:00Z", "since"},
	} {
		r := httptest.NewRequest(request.method, "/site/oak/native?"+request.query, nil)
		r.Header.Set("Content-Type", ndjson)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), request.name+" is repeated") {
			t.Errorf("%s %s: got %d %s", request.method, request.query, w.Code, w.Body)
		}
	}
}

// distinctly is a store that refuses a call with a record twice. It counts the calls.
type distinctly struct {
	Store
	calls *int
}

func (s distinctly) Restore(_ context.Context, records []store.Dumped) ([]store.Restored, error) {
	*s.calls++
	results := make([]store.Restored, len(records))
	for i := range records {
		for j := range i {
			if records[i].Key.Compare(records[j].Key) == 0 {
				results[i].Err = &store.InvalidDumpError{At: "id", Problem: "is repeated"}
			}
		}
	}
	return results, nil
}

// TestImportOfParts checks that the parts of a record in one request are restored one after the other.
func TestImportOfParts(t *testing.T) {
	calls := 0
	h := New(Config{
		Admit: func(*http.Request, string) (Site, access.Caller, error) {
			return Site{Store: distinctly{calls: &calls}}, access.Caller{Name: "alice"}, nil
		},
		Authorizer: everyone{},
		CheckBody:  func(store.Key, store.Body) []Problem { return nil },
		Log:        slog.New(slog.DiscardHandler),
	})
	d, other := dumped(), dumped()
	other.Key.ID = "other"
	lines := appendLine(nil, &d, 1)
	lines = appendLine(lines, &other, 0)
	d.Key.ID = strings.ToLower(d.Key.ID)
	lines = appendLine(lines, &d, 2)
	r := httptest.NewRequest(http.MethodPost, "/site/oak/native", bytes.NewReader(lines))
	r.Header.Set("Content-Type", ndjson)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if want := `"unchanged":3,"failed":0,`; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) || calls != 2 {
		t.Errorf("got %d %s with %d calls, want %s with 2", w.Code, w.Body, calls, want)
	}
}

// TestConcurrentImports checks that the bodies of concurrent imports are limited in all and for each site.
func TestConcurrentImports(t *testing.T) {
	h := New(Config{
		Admit: func(*http.Request, string) (Site, access.Caller, error) {
			return Site{Store: restoring{}}, access.Caller{Name: "alice"}, nil
		},
		Authorizer: everyone{},
		CheckBody:  func(store.Key, store.Body) []Problem { return nil },
		Log:        slog.New(slog.DiscardHandler),
	})
	send := func(site string, body io.Reader) int {
		r := httptest.NewRequest(http.MethodPost, "/site/"+site+"/native", body)
		r.Header.Set("Content-Type", ndjson)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	// hold begins an import of unknown size and returns the function that ends it.
	hold := func(site string) func() {
		body, client := io.Pipe()
		ended := make(chan int)
		go func() { ended <- send(site, body) }()
		if _, err := client.Write([]byte("\n")); err != nil { // returns when the body is read
			t.Fatal(err)
		}
		return func() {
			_ = client.Close()
			if code := <-ended; code != http.StatusOK {
				t.Errorf("%s: got %d, want 200", site, code)
			}
		}
	}
	small := func() io.Reader { return strings.NewReader("\n") } // httptest sets its length
	ends := []func(){hold("oak"), hold("oak"), hold("oak")}
	if code := send("oak", small()); code != http.StatusTooManyRequests {
		t.Errorf("the fourth import of a site: got %d, want 429", code)
	}
	if code := send("elm", small()); code != http.StatusOK {
		t.Errorf("an import of another site: got %d, want 200", code)
	}
	ends = append(ends, hold("elm"))
	if code := send("ash", small()); code != http.StatusTooManyRequests {
		t.Errorf("the fifth import: got %d, want 429", code)
	}
	for _, end := range ends {
		end()
	}
	if code := send("oak", small()); code != http.StatusOK {
		t.Errorf("after the imports: got %d, want 200", code)
	}
}
