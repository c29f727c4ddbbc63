package bulk

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

// TestExportOfAnother keeps the files of an interrupted export of another site or in another format.
func TestExportOfAnother(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler()) // which does not have the interrupted export
	defer server.Close()
	client, err := siteapi.New(siteapi.Config{BaseURL: server.URL, Token: func(context.Context) (string, error) { return "token", nil }})
	if err != nil {
		t.Fatal(err)
	}
	for name, state := range map[string]any{
		"another site":   exportProgress{ID: "1", Site: "https://other", Query: ""},
		"another query":  exportProgress{ID: "1", Site: "https://site", Query: "_type=Patient"},
		"another format": nativeProgress{Manifest: NativeManifest{Format: NativeFormat, Site: "https://site"}},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			write(t, directory, "Patient.00001.ndjson", "{}")
			write(t, directory, "records.00001.ndjson", "{}")
			if err := saveState(directory, exportState, state); err != nil {
				t.Fatal(err)
			}
			before := contents(t, directory)
			_, err := Export(t.Context(), client, "https://site", directory, url.Values{}, &Progress{Out: io.Discard, Now: time.Now})
			if err == nil || !strings.Contains(err.Error(), "choose another directory") {
				t.Errorf("error %v, want one about the interrupted export", err)
			}
			if diff := cmp.Diff(before, contents(t, directory)); diff != "" {
				t.Errorf("files (-before +after):\n%s", diff)
			}
		})
	}
}

// contents returns the files of a folder, without the file of the lock.
func contents(t *testing.T, directory string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() == lockName {
			continue
		}
		text, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(text)
	}
	return files
}
