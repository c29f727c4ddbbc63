package ahds

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/access/gate/gatetest"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/keyring"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
)

type allowAll struct{}

func (allowAll) Authorize(context.Context, access.Caller, access.Tenant, access.Action) error {
	return nil
}

// oneRecord is a store with one record, which it returns for each key. A write replaces the record.
type oneRecord struct {
	store.Store
	record  store.Record
	written store.Op
}

func (s *oneRecord) Get(_ context.Context, key store.Key) (store.Record, error) {
	rec := s.record
	rec.Key = key
	return rec, nil
}

func (s *oneRecord) Atomic() bool { return true }

func (s *oneRecord) Search(context.Context, store.Query) (store.Page, error) {
	return store.Page{}, nil
}

func (s *oneRecord) History(_ context.Context, query store.HistoryQuery) (store.Page, error) {
	rec := s.record
	rec.Key = store.Key{Type: query.Key.Type, ID: "0198c4f2-7d1e-7c3a-9b5f-000000000009"}
	return store.Page{Records: []store.Record{rec}, Total: 1}, nil
}

func (s *oneRecord) Write(_ context.Context, ops []store.Op) ([]store.Result, error) {
	s.written = ops[0]
	rec := s.record
	rec.Key, rec.Body, rec.Version = ops[0].Key, ops[0].Body, rec.Version+1
	return slices.Repeat([]store.Result{{Outcome: store.Updated, Record: rec}}, len(ops)), nil
}

// fuzzed is a facade of one site with one slot, with a clock that stands still.
func fuzzed(t testing.TB) (http.Handler, *oneRecord) {
	t.Helper()
	content, _, err := slot.Fields.Create(mustParse(t, seedSlot), schema.Identity{Name: slot.IDField})
	if err != nil {
		t.Fatal(err)
	}
	body, err := slots.encode(stored{content: content, service: serviceData{Fingerprint: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2031, 3, 1, 0, 0, 0, 0, time.UTC)
	s := &oneRecord{record: store.Record{UID: "u", Version: 3, Created: at, Updated: at, Body: body}}
	site := DataStore{Settings: settings.Settings{ID: "demo"}, BaseURL: "https://h/site/demo/ahds/v1", Store: gatetest.Everything(s), Events: fuzzedSource()}
	handler, err := New(Config{
		Admit:      func(*http.Request, string) (DataStore, access.Caller, error) { return site, access.Caller{}, nil },
		Find:       func(*http.Request, string) (DataStore, error) { return site, nil },
		Authorizer: allowAll{}, HoldKeys: keyring.Fixed(make([]byte, keyring.Size)), FeedKeys: keyring.Fixed(make([]byte, keyring.Size)), Cursors: noCursors{},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now: func() time.Time { return at },
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler, s
}

func mustParse(t testing.TB, text string) schema.Object {
	t.Helper()
	object, err := schema.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

const (
	seedSlot = `{"startAt":"2031-03-01T09:30:00+05:45","endAt":"2031-03-01T10:00:00.5Z","isActive":true,"isBooked":false,"locationId":"0198c4f2-7d1e-7c3a-9b5f-000000000001",` +
		`"resourceId":"0198c4f2-7d1e-7c3a-9b5f-000000000002","serviceType":{"code":"x","system":"urn:a:b"},"notes":"a\u0000","extensions":{"a" : [1.0,{"b":null}]}}`
	seedGroup = `{"name":"a","status":"active","category":"","description":"","locationId":"","organizationId":"x.1","extensions":{}}`
	seedPath  = "/site/demo/ahds/v1/availability-slot/0198c4f2-7d1e-7c3a-9b5f-000000000009"
)

// checkAnswer expects what every answer has: a status that is not the server's failure,
// and JSON of its kind.
func checkAnswer(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code == http.StatusInternalServerError || w.Code < 200 {
		t.Fatalf("%s: status %d, %s", what, w.Code, w.Body)
	}
	if w.Code == http.StatusMethodNotAllowed && w.Header().Get("Allow") == "" {
		t.Fatalf("%s: 405 without Allow", what)
	}
	if w.Body.Len() == 0 || strings.HasPrefix(w.Header().Get("Content-Type"), typeCalendar) {
		return
	}
	var said struct{ Type, Code, Detail string }
	if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil {
		t.Fatalf("%s: %v: %s", what, err, w.Body)
	}
	if w.Code >= http.StatusBadRequest && (said.Type == "" || said.Code == "" || said.Detail == "" || w.Header().Get("Content-Type") != typeProblem) {
		t.Fatalf("%s: no problem: %s", what, w.Body)
	}
}

// FuzzRequestLine sends any method and target.
func FuzzRequestLine(f *testing.F) {
	const base = "/site/demo/ahds/v1"
	for _, path := range []string{
		"", "/", "/availability-slot", "/availability-slot/", "/availability-slot/7", "/availability-slot.ics?token=a.b", "/eventgroup?status=active,archived&sortBy=name",
		"/availability-slot?startAtFrom=2031-03-01T09:30:00%2B05:45&page=99999999999999999999&pageSize=100&sortOrder=desc", "/availability-slot?isActive=&isActive=true&x",
		"/availability-slot?notes=%00%ff&serviceType=|&overlapsTo=2031-03-01T09:30:00 05:45", "/availability-slot?%zz", "/availability-slot-feed?resourceId=x",
		"/availability-slot/batch", "/availability-slot/generate", "/availability-slot/changes?since=2031-03-01T09:30:00Z&pageSize=5", "/availability-slot/changes?since=x&pageSize=-1",
		"/availability-slot/0198c4f2-7d1e-7c3a-9b5f-000000000009", "/availability-slot/0198c4f2-7d1e-7c3a-9b5f-000000000009/hold", "/availability-slot/%2F/book",
		"/availability-slot/0198c4f2%2D7d1e-7c3a-9b5f-000000000009/release?x=1", "/../fhir/patient",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"} {
			f.Add(method, base+path)
		}
	}
	f.Add("FROB", "http://h"+base+"/eventgroup")
	handler, _ := fuzzed(f)
	f.Fuzz(func(t *testing.T, method, target string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")))
		if err != nil {
			return // net/http refuses it by itself
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		checkAnswer(t, method+" "+target, w)
	})
}

// FuzzBody creates, replaces and patches with any body: what is taken is stored in a form
// that is read back the same, and what is answered can be put back.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		seedSlot, seedGroup, "", "{}", "null", `[]`, `{"a":1,"a":2}`, `{"extensions":{"a":null,"b":{"c":null}}}`, `{"serviceType":{"code":null}}`, `{"notes":"\ud800"}`,
		`{"isBooked":true}`, `{"endAt":"2031-03-01T09:30:00+05:45"}`, `{"startAt":"2016-12-31T23:59:60Z"}`, `{"startAt":"0000-01-01T00:00:00Z"}`, `{"extensions":{"":{}}}`,
		`{"availabilitySlotId":"0198C4F2-7d1e-7c3a-9b5f-000000000009"}`, `{"ttlSeconds":1e3,"holdToken":""}`, `{"ttlSeconds":60}`, "{\"notes\":\"\xff\"}", "\ufeff{}", `{} {}`,
		strings.Repeat(`{"extensions":`, 70) + "1" + strings.Repeat("}", 70),
	} {
		for which := range uint8(6) {
			f.Add(which, []byte(body))
		}
	}
	handler, records := fuzzed(f)
	targets := []struct{ method, path string }{
		{"POST", "/site/demo/ahds/v1/availability-slot"},
		{"PUT", seedPath},
		{"PATCH", seedPath},
		{"POST", seedPath + "/hold"},
		{"POST", seedPath + "/release"},
		{"POST", "/site/demo/ahds/v1/eventgroup"},
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		target := targets[int(which)%len(targets)]
		w := send(handler, target.method, target.path, body)
		checkAnswer(t, target.method+" "+string(body), w)
		if w.Code >= http.StatusBadRequest {
			return
		}
		k := slots
		if strings.HasSuffix(target.path, "eventgroup") {
			k = eventGroups
		}
		s, err := k.decode(records.written.Body.JSON)
		if err != nil {
			t.Fatalf("%s is stored as %s: %v", body, records.written.Body.JSON, err)
		}
		again, err := k.encode(s)
		if err != nil || !bytes.Equal(again.JSON, records.written.Body.JSON) {
			t.Fatalf("%s is stored as %s, which reads as %s: %v", body, records.written.Body.JSON, again.JSON, err)
		}
		if k == slots {
			checkSlot(t, s)
		}
	})
}

// checkSlot expects what every slot that is stored has.
func checkSlot(t *testing.T, s stored) {
	t.Helper()
	is := slot.Read(s.content)
	if !is.End.After(is.Start) || is.Resource == "" || len(slot.Check(s.content)) > 0 {
		t.Fatalf("a slot was taken that is none: %v", s.content)
	}
	for _, claim := range slotClaims(s, time.Date(2031, 3, 1, 0, 0, 0, 0, time.UTC)) {
		if claim.From.IsZero() || !claim.Until.After(claim.From) || !claim.From.Equal(claim.From.Truncate(time.Microsecond)) || !claim.Until.Equal(claim.Until.Truncate(time.Microsecond)) {
			t.Fatalf("a slot claims %v", claim)
		}
	}
	if len(slot.Values(s.content)) < 8 {
		t.Fatalf("a slot is not found: %v", s.content)
	}
}

func send(handler http.Handler, method, path string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// FuzzQuery reads any query string of a list: what is taken has bounds.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		"", "page=0&pageSize=100", "page=9223372036854775807&pageSize=100", "startAtFrom=1900-01-01T00:00:00Z", "endAtTo=9999-12-31T23:59:59.999999Z", "overlapsFrom=2031-03-01T09:30:00 05:45",
		"notes=%ef%bf%bd&serviceType=a|b|c", "status=active,active", "category=x&name=ẞ", "updatedFrom=2031-03-01T09:30:00.123456789Z", "sortBy=&sortOrder=ASC", "page=-0",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		for _, k := range kinds() {
			asked, err := list.Parse(query, k.lists)
			if err == nil && (asked.PageSize < 1 || asked.PageSize > list.MaxPageSize || asked.Page < 0 || asked.Skip() < 0 || asked.Skip()/asked.PageSize != asked.Page) {
				t.Fatalf("%s: %+v", text, asked)
			}
			if _, known := k.sorts[asked.SortBy]; err == nil && !known {
				t.Fatalf("%s: no order for %q", text, asked.SortBy)
			}
		}
	})
}

// noCursors opens no cursor.
type noCursors struct{}

func (noCursors) Seal(CursorScope, []byte) string { return "cursor" }

func (noCursors) Open(CursorScope, string) ([]byte, error) {
	return nil, errors.New("is not of this list")
}
