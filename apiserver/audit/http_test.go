package audit

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// serve sends a request through a Handler around serve, and returns the answer and the entries. Its clock
// is fake: entries of reads are not stored before the Log is closed.
func serve(t *testing.T, storage *memory, settings Settings, method string, serve http.HandlerFunc) (w *httptest.ResponseRecorder, got []Entry) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := NewLog("oak", storage, settings)
		var lines bytes.Buffer
		auditor := &Auditor{Now: func() time.Time { return noon }, Lines: NewLines(&lines)}
		handler := auditor.Handler("fhir", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			From(r.Context()).At(Sink{ID: "1042", Log: log})
			w.Header().Set("ETag", `W/"1"`)
			w.Header().Set("Access-Control-Allow-Origin", "*") // of a handler further out
			serve(w, r)
		}), func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		})
		w = httptest.NewRecorder()
		w.Header().Set("X-Request-Id", "r1")
		r := httptest.NewRequest(method, "/?name=secret", nil)
		r.Header.Set("Paddock-Break-Glass", map[bool]string{true: "an emergency"}[method == "HEAD"])
		handler.ServeHTTP(w, r)
		durable := storage.stored()
		log.Close(t.Context())
		auditor.Close()
		for _, batch := range storage.batches {
			for _, e := range batch {
				got = append(got, *e)
			}
		}
		if storage.err == nil && (durable > 0) != (method != "GET" || w.Code >= 400) {
			t.Errorf("%s %d: %d entries are durable when it is answered", method, w.Code, durable)
		}
		if n := bytes.Count(lines.Bytes(), []byte("\n")); storage.err == nil && n != len(got) {
			t.Errorf("%d lines of %d entries", n, len(got))
		}
	})
	return w, got
}

// TestConcealed answers a refusal at a hidden site as fast as at a site that has no log, and records it.
func TestConcealed(t *testing.T) {
	for name, failure := range map[string]error{"a slow log": nil, "a failing log": errors.New("away")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				storage := &memory{delay: time.Second, err: failure}
				log := NewLog("oak", storage, Settings{})
				defer log.Close(t.Context())
				if failure != nil {
					_ = log.add(t.Context(), entries(1), true) // it is known to fail
				}
				handler := (&Auditor{Now: time.Now}).Handler("fhir", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					From(r.Context()).At(Sink{ID: "1042", Log: log})
					From(r.Context()).Conceal(true)
					w.WriteHeader(http.StatusNotFound)
				}), func(w http.ResponseWriter, _ *http.Request, err error) {
					http.Error(w, err.Error(), http.StatusServiceUnavailable)
				})
				w, began := httptest.NewRecorder(), time.Now()
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
				if took := time.Since(began); took != 0 || w.Code != http.StatusNotFound {
					t.Errorf("answered with %d after %v", w.Code, took)
				}
				storage.fail(nil)
				time.Sleep(5 * time.Second)
				if storage.stored() == 0 {
					t.Error("it is not recorded")
				}
			})
		})
	}
}

func TestHandler(t *testing.T) {
	key := func(id string) store.Key { return store.Key{Type: "Patient", ID: id} }
	alice := access.Caller{Name: "system:serviceaccount:oak:alice", Groups: []string{"g"}}
	for name, test := range map[string]struct {
		method   string
		serve    http.HandlerFunc
		settings Settings
		want     []Entry
	}{
		"a search": {method: "GET", serve: func(w http.ResponseWriter, r *http.Request) {
			rec := From(r.Context())
			rec.Caller(alice)
			rec.Interaction("search-type", Read, key(""))
			rec.Parameters("name")
			rec.AddRead(key("a"), key("b"))
			rec.AddRead(key("A"))
			_, _ = w.Write([]byte("{}"))
		}, want: []Entry{{Caller: alice.Name, Subject: ServiceAccount, Interaction: "search-type", Action: Read, Method: "GET", Type: "Patient", Records: RecordsOf("Patient/a", "Patient/b"), Status: 200}}},
		"names of parameters": {method: "GET", settings: Settings{Parameters: true}, serve: func(_ http.ResponseWriter, r *http.Request) {
			From(r.Context()).Parameters("name")
		}, want: []Entry{{Method: "GET", Status: 200, Parameters: []string{"name"}}}},
		"a write lists what it wrote": {method: "PUT", serve: func(w http.ResponseWriter, r *http.Request) {
			rec := From(r.Context())
			rec.Interaction("update", Update, key("a"))
			rec.AddRead(key("other"))
			rec.AddWritten(key("a"))
			w.WriteHeader(http.StatusCreated)
		}, want: []Entry{{Interaction: "update", Action: Update, Method: "PUT", Type: "Patient", Records: RecordsOf("Patient/a"), Status: 201}}},
		"no token": {
			method: "GET", serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			want: []Entry{{Method: "GET", Status: 401, Rule: "token"}},
		},
		"no right": {method: "GET", serve: func(w http.ResponseWriter, r *http.Request) {
			From(r.Context()).Caller(access.Caller{Name: "site:oak:bob", Issuer: "clinic"})
			w.WriteHeader(http.StatusForbidden)
		}, want: []Entry{{Method: "GET", Caller: "site:oak:bob", Issuer: "clinic", Subject: IssuedSubject, Status: 403, Rule: "rbac"}}},
		"a privacy rule": {method: "GET", serve: func(w http.ResponseWriter, r *http.Request) {
			From(r.Context()).Deny("very-restricted")
			w.WriteHeader(http.StatusForbidden)
		}, want: []Entry{{Method: "GET", Status: 403, Rule: "very-restricted"}}},
		"a broken glass": {
			method: "HEAD", serve: func(http.ResponseWriter, *http.Request) {},
			want: []Entry{{Method: "HEAD", Status: 200, BreakGlass: true}},
		},
		"a method that nobody knows": {
			method: "SECRET", serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
			want: []Entry{{Method: "other", Status: 404}},
		},
		"a bundle": {method: "POST", serve: func(w http.ResponseWriter, r *http.Request) {
			From(r.Context()).Interaction("batch", Execute, store.Key{})
			first, second := From(Part(r.Context(), "GET")), From(Part(r.Context(), "DELETE"))
			first.Interaction("read", Read, key("a"))
			first.AddRead(key("a"))
			second.Interaction("delete", Delete, key("b"))
			first.Status(http.StatusOK)
			From(r.Context()).AddRead(key("a"), key("c"))
			w.WriteHeader(http.StatusConflict)
		}, want: []Entry{
			{Interaction: "read", Action: Read, Method: "GET", Type: "Patient", Records: RecordsOf("Patient/a"), Status: 200},
			{Interaction: "delete", Action: Delete, Method: "DELETE", Type: "Patient", Records: RecordsOf("Patient/b"), Status: 409},
			{Interaction: "batch", Action: Execute, Method: "POST", Records: RecordsOf("Patient/c"), Status: 409},
		}},
		"what is no access": {method: "GET", serve: func(_ http.ResponseWriter, r *http.Request) { From(r.Context()).Skip() }},
	} {
		t.Run(name, func(t *testing.T) {
			if test.want == nil {
				test.method = "GET"
			}
			_, got := serve(t, &memory{}, test.settings, test.method, test.serve)
			for i := range test.want {
				test.want[i].Time, test.want[i].Site, test.want[i].Request, test.want[i].API, test.want[i].Address = noon, "1042", "r1", "fhir", "192.0.2.1"
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(Entry{}, "ID")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandlerRefuses(t *testing.T) {
	write := func(w http.ResponseWriter, r *http.Request) {
		From(r.Context()).AddWritten(store.Key{Type: "Patient", ID: "a"})
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("the record"))
	}
	w, _ := serve(t, &memory{err: errors.New("away")}, Settings{}, "PUT", write)
	if want := ErrWritten.Error() + "\n"; w.Code != http.StatusServiceUnavailable || w.Body.String() != want || w.Header().Get("ETag") != "" || w.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
	w, _ = serve(t, &memory{err: errors.New("away")}, Settings{Continue: true}, "PUT", write)
	if w.Code != http.StatusCreated || w.Body.String() != "the record" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	w, _ = serve(t, &memory{err: errors.New("away")}, Settings{}, "GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	if want := ErrUnavailable.Error() + "\n"; w.Code != http.StatusServiceUnavailable || w.Body.String() != want {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

// TestHandlerNested records a request once that passes two Handlers.
func TestHandlerNested(t *testing.T) {
	storage, now := &memory{}, func() time.Time { return noon }
	log := NewLog("oak", storage, Settings{})
	fail := func(http.ResponseWriter, *http.Request, error) {}
	inner := (&Auditor{Now: now}).Handler("fhir", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		From(r.Context()).Interaction("read", Read, store.Key{Type: "Patient", ID: "a"})
		w.WriteHeader(http.StatusOK)
	}), fail)
	outer := (&Auditor{Now: now}).Handler("kubernetes", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		From(r.Context()).At(Sink{ID: "1042", Log: log})
		From(r.Context()).Skip() // what the outer one knows is no access
		inner.ServeHTTP(w, r)
	}), fail)
	outer.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	log.Close(t.Context())
	if n := storage.stored(); n != 1 || storage.batches[0][0].API != "fhir" {
		t.Errorf("%d entries", n)
	}
}

// TestManyRecords makes several entries of a request that shows many records.
func TestManyRecords(t *testing.T) {
	_, got := serve(t, &memory{}, Settings{}, "GET", func(_ http.ResponseWriter, r *http.Request) {
		for i := range 2*maxRecords + 1 {
			From(r.Context()).AddRead(store.Key{Type: "Patient", ID: string(rune('a'+i%26)) + time.Duration(i).String()})
		}
	})
	if len(got) != 3 || number(got[0].Records) != maxRecords || number(got[2].Records) != 1 || got[0].ID == got[1].ID {
		t.Errorf("%d entries", len(got))
	}
}

func number(records Records) int { return len(slices.Collect(records.All())) }
