package bulk

import (
	"context"
	"crypto/sha256"
	"encoding"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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

// TestExportRemovesParts checks that an export from the beginning removes the incomplete files of another
// one, and an export that is refused removes nothing.
func TestExportRemovesParts(t *testing.T) {
	expired := exportProgress{ID: "expired", Site: "https://site"}
	for name, test := range map[string]struct {
		state any
		files []string
		// remain are those of the files that remain.
		remain []string
		native bool
		// want is a part of the error.
		want string
	}{
		"no state":          {files: []string{"Patient.00007.ndjson.part", "records.00007.ndjson.part"}},
		"no state, native":  {files: []string{"Patient.00007.ndjson.part", "records.00007.ndjson.part"}, native: true},
		"an expired export": {state: expired, files: []string{"Patient.00007.ndjson", "Patient.00008.ndjson.part"}},
		"a page, native":    {state: nativeProgress{Manifest: NativeManifest{Format: NativeFormat, Site: "https://site"}, Digest: digestOfNothing(t)}, files: []string{"records.00001.ndjson.part"}, native: true},
		"other files":       {files: []string{"notes.ndjson.part", "Patient.part"}, remain: []string{"notes.ndjson.part", "Patient.part"}},
		"a complete export": {files: []string{"Patient.00001.ndjson.part", ManifestName}, remain: []string{"Patient.00001.ndjson.part", ManifestName}, want: "choose an empty directory"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/native"): // a site without records
					w.Header().Set("Paddock-Time", "2031-01-01T00:00:00.000Z")
				case strings.HasSuffix(r.URL.Path, "/$export"):
					w.Header().Set("Content-Location", "/fhir/$export/new")
					w.WriteHeader(http.StatusAccepted)
				case strings.HasSuffix(r.URL.Path, "/new"):
					_, _ = io.WriteString(w, `{"transactionTime":"2031-01-01T00:00:00Z","output":[]}`)
				default:
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			defer server.Close()
			client, err := siteapi.New(siteapi.Config{BaseURL: server.URL, Token: func(context.Context) (string, error) { return "token", nil }})
			if err != nil {
				t.Fatal(err)
			}
			directory := t.TempDir()
			if test.state != nil {
				if err := saveState(directory, exportState, test.state); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range test.files {
				write(t, directory, file, "{")
			}
			progress := &Progress{Out: io.Discard, Now: time.Now}
			if test.native {
				_, err = ExportNative(t.Context(), client, "https://site", directory, progress)
			} else {
				_, err = Export(t.Context(), client, "https://site", directory, url.Values{}, progress)
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			left := contents(t, directory)
			if test.want == "" {
				delete(left, ManifestName)
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(test.remain)), slices.Sorted(maps.Keys(left))); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// digestOfNothing returns the state of a digest of no lines.
func digestOfNothing(t *testing.T) []byte {
	t.Helper()
	state, err := sha256.New().(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return state
}
