package bulk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

// dumping is a site with records that it exports two by two. In the second pass it has one that changed.
type dumping struct {
	fail     atomic.Int64 // the number of the request that is refused; 0 for none
	requests atomic.Int64
}

func (s *dumping) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.requests.Add(1) == s.fail.Load() {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	line := func(id int, updated string) string {
		return fmt.Sprintf(`{"type":"Patient","id":"p%d","versions":[{"version":1,"updated":"%s"}]}`+"\n", id, updated)
	}
	header := w.Header()
	header.Set("Paddock-Time", "2031-01-01T00:00:0"+fmt.Sprint(len(r.URL.Query().Get("since"))%7)+".000Z")
	if since := r.URL.Query().Get("since"); since != "" {
		if since == "2031-01-01T00:00:00.000Z" {
			fmt.Fprint(w, line(2, "2031-01-01T00:00:00.000Z"), line(3, "2031-01-01T00:00:02.000Z"))
		}
		return
	}
	switch r.URL.Query().Get("after") {
	case "":
		header.Set("Paddock-Next", "Patient/p2")
		fmt.Fprint(w, line(1, "2030-01-01T00:00:00.000Z"), line(2, "2031-01-01T00:00:00.000Z"))
	case "Patient/p2":
		header.Set("Paddock-Next", "Patient/p4")
		fmt.Fprint(w, line(3, "2030-01-01T00:00:00.000Z"), line(4, "2030-01-01T00:00:00.000Z"))
	default:
		fmt.Fprint(w, line(5, "2030-01-01T00:00:00.000Z"))
	}
}

// TestExportNative interrupts an export at each of its requests, and checks that the result is always
// the same.
func TestExportNative(t *testing.T) {
	site := &dumping{}
	server := httptest.NewServer(site)
	defer server.Close()
	client, err := siteapi.New(siteapi.Config{BaseURL: server.URL, Token: func(context.Context) (string, error) { return "token", nil }})
	if err != nil {
		t.Fatal(err)
	}
	export := func(directory string) (NativeManifest, error) {
		return ExportNative(t.Context(), client, "https://site", directory, &Progress{Out: io.Discard, Now: time.Now})
	}
	want, err := export(filepath.Join(t.TempDir(), "whole"))
	if err != nil {
		t.Fatal(err)
	}
	if want.Records["Patient"] != 6 || want.From != "2031-01-01T00:00:00.000Z" || len(want.Files) != 4 {
		t.Errorf("manifest %+v, want 6 lines in 4 files", want)
	}
	all := site.requests.Load()
	for at := range all {
		directory := filepath.Join(t.TempDir(), "part")
		site.requests.Store(0)
		site.fail.Store(at + 1)
		if _, err := export(directory); err == nil || !strings.Contains(err.Error(), "403") {
			t.Fatalf("request %d: got %v, want 403", at+1, err)
		}
		if _, err := os.Stat(filepath.Join(directory, ManifestName)); err == nil {
			t.Errorf("request %d: there is a manifest already", at+1)
		}
		site.fail.Store(0)
		written, err := filepath.Glob(filepath.Join(directory, "records.*"))
		if err != nil {
			t.Fatal(err)
		}
		// The file of a page whose state was not stored.
		write(t, directory, fmt.Sprintf("records.%05d.ndjson", len(written)+1), "{}")
		got, err := export(directory)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("interrupted at request %d: error %v (-want +got):\n%s", at+1, err, diff)
		}
		if native, err := checkNative(directory); native == nil || err != nil {
			t.Errorf("check: %v, %v", native, err)
		}
		if written, err = filepath.Glob(filepath.Join(directory, "records.*")); len(written) != len(want.Files) || err != nil {
			t.Errorf("interrupted at request %d: the files are %v, %v", at+1, written, err)
		}
	}
}

// TestImportOfEmptySite checks that the export of a site without records can be imported.
func TestImportOfEmptySite(t *testing.T) {
	site := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Paddock-Time", "2031-01-01T00:00:00.000Z")
	})
	server := httptest.NewServer(site)
	defer server.Close()
	client, err := siteapi.New(siteapi.Config{BaseURL: server.URL, Token: func(context.Context) (string, error) { return "token", nil }})
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	if _, err := ExportNative(t.Context(), client, "https://site", directory, &Progress{Out: io.Discard, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	if counts, err := importInto(t, site, directory); len(counts) > 0 || err != nil {
		t.Errorf("got %v, error %v, want no lines", counts, err)
	}
}

// TestExportNativeParts checks that a record of several parts is counted once, and that a pass does not write
// parts again that the pass before has written.
func TestExportNativeParts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		part := func(number, updated int) string {
			return fmt.Sprintf(`{"type":"Patient","id":"p1","part":%d,"versions":[{"updated":"203%d-01-01T00:00:00.000Z"}]}`+"\n", number, updated)
		}
		switch r.URL.Query().Get("since") {
		case "":
			w.Header().Set("Paddock-Time", "2031-01-01T00:00:00.000Z")
			fmt.Fprint(w, part(1, 0), part(2, 0))
		case "2031-01-01T00:00:00.000Z":
			w.Header().Set("Paddock-Time", "2033-01-01T00:00:00.000Z")
			fmt.Fprint(w, part(1, 0), part(2, 2))
		default:
			w.Header().Set("Paddock-Time", "2034-01-01T00:00:00.000Z")
		}
	}))
	defer server.Close()
	client, err := siteapi.New(siteapi.Config{BaseURL: server.URL, Token: func(context.Context) (string, error) { return "token", nil }})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ExportNative(t.Context(), client, "https://site", t.TempDir(), &Progress{Out: io.Discard, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Files) != 2 || got.Files[1].Lines != 1 || got.Records["Patient"] != 1 {
		t.Errorf("manifest %+v, want one record in two files, the second with one line", got)
	}
}

// TestExportNativeChecksFiles interrupts an export and changes one of its files.
func TestExportNativeChecksFiles(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(path string) error
		want   string
	}{
		{"removed", os.Remove, "records.00001.ndjson is missing or has changed; export into an empty directory: "},
		{"cut", func(path string) error { return os.Truncate(path, 7) }, "it has 7 bytes, and "},
	} {
		t.Run(test.name, func(t *testing.T) {
			site := &dumping{}
			server := httptest.NewServer(site)
			defer server.Close()
			client, err := siteapi.New(siteapi.Config{BaseURL: server.URL, Token: func(context.Context) (string, error) { return "token", nil }})
			if err != nil {
				t.Fatal(err)
			}
			directory := t.TempDir()
			site.fail.Store(3)
			export := func() error {
				_, err := ExportNative(t.Context(), client, "https://site", directory, &Progress{Out: io.Discard, Now: time.Now})
				return err
			}
			if err := export(); err == nil || !strings.Contains(err.Error(), "403") {
				t.Fatalf("error %v, want 403", err)
			}
			if err := test.change(filepath.Join(directory, "records.00001.ndjson")); err != nil {
				t.Fatal(err)
			}
			if err := export(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if _, err := os.Stat(filepath.Join(directory, ManifestName)); err == nil {
				t.Error("there is a manifest")
			}
		})
	}
}

func TestCheckNative(t *testing.T) {
	directory := t.TempDir()
	write(t, directory, "records.00001.ndjson", "{}")
	manifest := func(m NativeManifest) {
		t.Helper()
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		write(t, directory, ManifestName, string(text))
	}
	for _, test := range []struct {
		name     string
		manifest NativeManifest
		problem  string
	}{
		{"another kind", NativeManifest{}, ""},
		{"another version", NativeManifest{Format: "paddock-native/2"}, "reads paddock-native/1"},
		{"changed file", NativeManifest{Format: NativeFormat, Files: []NativeFile{{Name: "records.00001.ndjson", SHA256: "00"}}}, "differs from what was exported"},
		{"missing file", NativeManifest{Format: NativeFormat, Files: []NativeFile{{Name: "records.00002.ndjson"}}}, "no such file"},
	} {
		manifest(test.manifest)
		native, err := checkNative(directory)
		if native != nil || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: got %v, %v, want %q", test.name, native, err, test.problem)
		}
	}
}

// TestCheckNativeOfDamagedManifest checks that a manifest that is not complete is not taken for one of an
// export in FHIR, whose files are imported in another format and without a comparison with their digests.
func TestCheckNativeOfDamagedManifest(t *testing.T) {
	text, err := json.MarshalIndent(NativeManifest{Format: NativeFormat}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ manifest, problem string }{
		"empty":                    {"", "manifest.json is damaged: unexpected end of JSON input; copy the file again"},
		"truncated":                {string(text[:len(text)-2]), "manifest.json is damaged: unexpected end of JSON input; copy the file again"},
		"zeros":                    {string(make([]byte, 100)), `manifest.json is damaged: invalid character '\x00'`},
		"of FHIR":                  {`{"transactionTime":"2031-01-01T00:00:00Z","records":{},"files":0}`, ""},
		"an array":                 {`[]`, ""},
		"a format that is no text": {`{"format":1}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			write(t, directory, ManifestName, test.manifest)
			native, err := checkNative(directory)
			if native != nil || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %v, %v, want %q", native, err, test.problem)
			}
		})
	}
}

// importing is a site that imports lines in the native format. It has the last part of the record, and refuses
// one without the part before.
type importing struct {
	mu    sync.Mutex
	parts []int
}

func (s *importing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if len(body) > maxRequest {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	created, errs, number := 0, []string{}, 0
	for line := range bytes.Lines(body) {
		number++
		if part, isPart := partOf(line); isPart && part > len(s.parts)+1 {
			errs = append(errs, fmt.Sprintf(`{"line":%d,"code":"part_missing","message":"none"}`, number))
			continue
		} else if isPart {
			s.parts = append(s.parts, part)
		}
		created++
	}
	fmt.Fprintf(w, `{"created":%d,"failed":%d,"errors":[%s]}`, created, len(errs), strings.Join(errs, ","))
}

// writeNative writes an export in the native format with one file.
func writeNative(t *testing.T, directory string, lines ...string) {
	t.Helper()
	const name = "records.00001.ndjson"
	write(t, directory, name, lines...)
	sum, err := DigestOf(filepath.Join(directory, name))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(NativeManifest{Format: NativeFormat, Files: []NativeFile{{Name: name, SHA256: sum}}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, directory, ManifestName, string(text))
}

// TestImportNativeParts checks that parts of a record are sent again until the part before is stored.
func TestImportNativeParts(t *testing.T) {
	directory := t.TempDir()
	padding := strings.Repeat("x", portionSize) // each part needs a request
	var parts []string
	for _, part := range []int{1, 3, 4, 2, 5} {
		parts = append(parts, fmt.Sprintf(`{"type":"Patient","id":"p1","part":%d,"versions":["%s"]}`, part, padding))
	}
	writeNative(t, directory, parts...)
	site := &importing{}
	counts, err := importInto(t, site, directory)
	if counts["created"] != len(parts) || counts["failed"] != 0 || err != nil {
		t.Errorf("counts %v, error %v", counts, err)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4, 5}, site.parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
}

// TestImportNativeOfLargeLines checks that no request is larger than a site accepts.
func TestImportNativeOfLargeLines(t *testing.T) {
	directory := t.TempDir()
	line := func(size int) string {
		const head, tail = `{"type":"Patient","id":"p1","versions":["`, `"]}`
		return head + strings.Repeat("x", size-len(head)-len(tail)-1) + tail
	}
	writeNative(t, directory, line(100), line(maxRequest), line(maxRequest+1), line(100))
	counts, err := importInto(t, &importing{}, directory)
	if counts["created"] != 3 || counts["failed"] != 1 || err != nil {
		t.Errorf("counts %v, error %v", counts, err)
	}
	text, err := os.ReadFile(filepath.Join(directory, ErrorsName))
	if want := `{"file":"records.00001.ndjson","line":3,"code":"too_large","message":"`; !strings.HasPrefix(string(text), want) || err != nil {
		t.Errorf("errors %s, %v, want %s", text, err, want)
	}
}

func TestPartOf(t *testing.T) {
	for line, want := range map[string]int{
		`{"type":"Patient","id":"p1","versions":[{"x":1,"part":2}]}`:                     0,
		`{"type":"Patient","id":"p1","part":1,"versions":[{}]}`:                          1,
		`{"type":"Patient","id":"p1","part":12,"versions":[{}]}`:                         12,
		`{"type":"Patient","id":"\",\"part\":3,\"versions\":[","versions":[{"part":1}]}`: 0,
	} {
		if part, isPart := partOf([]byte(line)); part != want || isPart != (want > 0) {
			t.Errorf("%s: got %d, %t, want %d", line, part, isPart, want)
		}
	}
}

// TestImportNativeFiles checks that a file that the manifest does not have is not sent.
func TestImportNativeFiles(t *testing.T) {
	directory := t.TempDir()
	write(t, directory, "records.00001.ndjson", `{"id":"p1"}`)
	write(t, directory, "records.00002.ndjson", `{"id":"p2"}`)
	sum, err := DigestOf(filepath.Join(directory, "records.00001.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(NativeManifest{Format: NativeFormat, Files: []NativeFile{{Name: "records.00001.ndjson", SHA256: sum}}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, directory, ManifestName, string(text))
	site := &enforcing{records: map[string]bool{}}
	if _, err := importInto(t, site, directory); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bool{"p1": true}, site.records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}
