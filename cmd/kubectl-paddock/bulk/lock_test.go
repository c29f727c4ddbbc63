package bulk

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

// TestLock checks that an export or an import into a folder that another process uses fails before it sends
// a request or changes a file, and that the folder is free when the other process ends.
func TestLock(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	client, err := siteapi.New(siteapi.Config{BaseURL: server.URL, Token: func(context.Context) (string, error) { return "token", nil }})
	if err != nil {
		t.Fatal(err)
	}
	progress := &Progress{Out: io.Discard, Now: time.Now}
	for name, command := range map[string]func(directory string) error{
		"export": func(directory string) error {
			_, err := Export(t.Context(), client, "https://site", directory, url.Values{}, progress)
			return err
		},
		"native export": func(directory string) error {
			_, err := ExportNative(t.Context(), client, "https://site", directory, progress)
			return err
		},
		"import": func(directory string) error {
			_, err := Import(t.Context(), client, "https://site", directory, false, progress)
			return err
		},
		"dry run": func(directory string) error {
			_, err := Import(t.Context(), client, "https://site", directory, true, progress)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			write(t, directory, "Basic.ndjson", `{"id":"b1"}`)
			write(t, directory, ErrorsName, "of the other process")
			lock, err := Lock(directory)
			if err != nil {
				t.Fatal(err)
			}
			before := contents(t, directory)
			if err := command(directory); err == nil || !strings.Contains(err.Error(), "the directory "+directory+" is in use by another process") {
				t.Errorf("error %v, want one about another process", err)
			}
			if diff := cmp.Diff(before, contents(t, directory)); diff != "" || requests > 0 {
				t.Errorf("%d requests, files (-before +after):\n%s", requests, diff)
			}
			if err := lock.Close(); err != nil {
				t.Fatal(err)
			}
			if err := command(directory); err == nil || !strings.Contains(err.Error(), "403") {
				t.Errorf("error %v, want 403", err)
			}
			requests = 0
		})
	}
	none := filepath.Join(t.TempDir(), "none")
	if _, err := Lock(none); err == nil || err.Error() != "the directory "+none+" does not exist" {
		t.Errorf("error %v, want one about the missing directory", err)
	}
}
