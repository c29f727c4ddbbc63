package bulk

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

// moving is a site with the records p1 to p4. The first page ends with p2, and its response breaks off
// after the next page was requested. When it is requested again, it ends with p1.
type moving struct {
	first atomic.Int64
	// ahead is closed when the page after p2 is requested.
	ahead chan struct{}
}

func (s *moving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const old = "2030-01-01T00:00:00.000Z"
	line := func(id int) string {
		return fmt.Sprintf(`{"type":"Patient","id":"p%d","versions":[{"version":1,"updated":"%s"}]}`+"\n", id, old)
	}
	w.Header().Set("Paddock-Time", "2031-01-01T00:00:00.000Z")
	switch query := r.URL.Query(); {
	case query.Get("since") != "":
	case query.Get("after") == "" && s.first.Add(1) == 1:
		w.Header().Set("Paddock-Next", "Patient/p2")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // an error means that the client is gone
		select {
		case <-s.ahead:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case query.Get("after") == "":
		w.Header().Set("Paddock-Next", "Patient/p1")
		fmt.Fprint(w, line(1))
	case query.Get("after") == "Patient/p1":
		w.Header().Set("Paddock-Next", "Patient/p3")
		fmt.Fprint(w, line(2), line(3))
	case query.Get("after") == "Patient/p2":
		close(s.ahead)
		fmt.Fprint(w, line(3), line(4))
	default:
		fmt.Fprint(w, line(4))
	}
}

// TestExportNativeReadsAhead checks that the next page is requested while the lines of a page are read,
// and that it is dropped if it does not follow that page.
func TestExportNativeReadsAhead(t *testing.T) {
	t.Parallel() // a broken response is requested again after two seconds
	server := httptest.NewServer(&moving{ahead: make(chan struct{})})
	defer server.Close()
	client, err := siteapi.New(siteapi.Config{BaseURL: server.URL, Token: func(context.Context) (string, error) { return "token", nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	directory := filepath.Join(t.TempDir(), "moving")
	got, err := ExportNative(ctx, client, "https://site", directory, &Progress{Out: io.Discard, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	var lines []int
	for _, file := range got.Files {
		lines = append(lines, file.Lines)
	}
	if diff := cmp.Diff([]int{1, 2, 1}, lines); diff != "" {
		t.Errorf("lines of the files (-want +got):\n%s", diff)
	}
	if native, err := checkNative(directory); native == nil || err != nil {
		t.Errorf("check: %v, %v", native, err)
	}
}

func TestChangedSince(t *testing.T) {
	const since = "2031-01-01T00:00:00.000Z"
	version := func(updated string) string { return `{"updated":"` + updated + `"}` }
	for _, test := range []struct {
		name, line string
		want       bool
	}{
		{"no version", `{}`, false},
		{"before", version("2030-12-31T23:59:59.999Z"), false},
		{"at the time", version(since), true},
		{"only the last version", version("2030-12-31T23:59:59.999Z") + version("2031-01-01T00:00:00.001Z"), true},
		{"cut off", `{"updated":"2030`, false},
	} {
		if got := changedSince([]byte(test.line), since); got != test.want {
			t.Errorf("%s: got %t, want %t", test.name, got, test.want)
		}
	}
}
