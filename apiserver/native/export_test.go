package native

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
)

// dumping is a store with a record of many large versions and a small record.
type dumping struct {
	Store
	records []store.Dumped
}

func (dumping) Watermark(context.Context) (time.Time, error) { return time.Time{}, nil }
func (dumping) Stats() store.Stats                           { return store.Stats{} }

func (d dumping) Dump(_ context.Context, query store.DumpQuery) (store.DumpPage, error) {
	found := slices.DeleteFunc(slices.Clone(d.records), func(each store.Dumped) bool {
		return query.Keys != nil && query.Keys[0].Compare(each.Key) != 0 || each.Key.Compare(query.After) <= 0
	})
	return store.DumpPage{Records: found}, nil
}

// TestLargeRecord checks that the lines of a large record fit into imports and its pages into responses,
// and that the lines together are the record.
func TestLargeRecord(t *testing.T) {
	const body = 3 << 20
	large := dumped()
	for version := range int64(30) {
		next := *large.Newest()
		large.Newest().Claims, large.Newest().Metadata, large.Newest().MetadataVersion = nil, nil, 0
		next.Version, next.Updated = version+3, next.Updated.Add(time.Second)
		next.Body.JSON = fmt.Appendf(nil, `{"x":"%d%s"}`, version, strings.Repeat("x", body))
		large.Versions = append(large.Versions, next)
	}
	small := dumped()
	small.Key.ID = "small"
	for i := range small.Versions {
		small.Versions[i].Key = small.Key
	}
	site := dumping{records: []store.Dumped{large, small}}
	h := New(Config{
		Admit: func(*http.Request, string) (Site, access.Caller, error) {
			return Site{Store: site}, access.Caller{Name: "alice"}, nil
		},
		Authorizer: everyone{},
		Log:        slog.New(slog.DiscardHandler),
	})
	var parts []store.Dumped
	pages, versions := 0, 0
	for after := ""; pages == 0 || after != ""; pages++ {
		w := httptest.NewRecorder()
		address := "/site/oak/native"
		if after != "" {
			address += "?after=" + url.QueryEscape(after)
		}
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
		if w.Code != http.StatusOK || w.Body.Len() > maxPage+3*body {
			t.Fatalf("after %q: got %d with %d bytes", after, w.Code, w.Body.Len())
		}
		for text := range bytes.Lines(w.Body.Bytes()) {
			if len(text) > partBytes+2*body {
				t.Errorf("a line has %d bytes", len(text))
			}
			part, err := parseLine(text)
			if err == nil {
				err = part.Check()
			}
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, part)
		}
		n, err := strconv.Atoi(w.Header().Get(versionsHeader))
		if err != nil {
			t.Fatal(err)
		}
		versions, after = versions+n, w.Header().Get(nextHeader)
	}
	if diff := cmp.Diff(small, parts[len(parts)-1]); diff != "" {
		t.Errorf("the small record (-want +got):\n%s", diff)
	}
	got := parts[0]
	for _, part := range parts[1 : len(parts)-1] {
		if !part.Continues {
			t.Error("a part does not continue the record")
		}
		missing, _, err := part.Missing(got.Newest(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		got.Versions = append(got.Versions, missing...)
	}
	if !slices.EqualFunc(large.Versions, got.Versions, func(a, b store.Record) bool { return store.SameVersion(&a, &b) }) {
		t.Error("the versions of the large record differ")
	}
	if diff := cmp.Diff(large.Newest().Claims, got.Newest().Claims); diff != "" || !bytes.Equal(got.Newest().Metadata, large.Newest().Metadata) {
		t.Errorf("claims (-want +got): %s, metadata %s", diff, got.Newest().Metadata)
	}
	if versions != 34 || pages < 3 {
		t.Errorf("%d versions on %d pages, want 34 on several", versions, pages)
	}
}

// TestInvalidAfter checks that texts that Postgres cannot compare are refused before they reach it.
func TestInvalidAfter(t *testing.T) {
	h := New(Config{
		Admit: func(*http.Request, string) (Site, access.Caller, error) {
			return Site{Store: restoring{}}, access.Caller{Name: "alice"}, nil
		},
		Authorizer: everyone{},
		Log:        slog.New(slog.DiscardHandler),
	})
	for _, after := range []string{"", "Patient", "Patient/a\x00", "Patient@/a", "Patient@0/a", "Patient@x/a", "Pat\x00ient/a", "Patient/\xff"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/site/oak/native?after="+url.QueryEscape(after), nil))
		if w.Code != http.StatusBadRequest {
			t.Errorf("after %q: got %d %s, want 400", after, w.Code, w.Body)
		}
	}
}
