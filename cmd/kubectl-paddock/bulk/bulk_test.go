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
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/siteapi"
)

// enforcing is a site that accepts a line if the records in its "needs" exist or are in the same
// request, as a site that enforces references does.
type enforcing struct {
	mu      sync.Mutex
	records map[string]bool
	// last are the lines that were written last, by id in lower case.
	last map[string]string
	// busy is the number of requests that it answers with 429 first.
	busy     int
	requests int
}

func (s *enforcing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.busy > 0 {
		s.busy--
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	body, _ := io.ReadAll(r.Body)
	together := map[string]bool{}
	for _, needs := range regexp.MustCompile(`"id":"(\w+)"`).FindAllStringSubmatch(string(body), -1) {
		together[needs[1]] = true
	}
	created, failed := 0, 0
	var errs []string
	number := 0
	for line := range strings.Lines(string(body)) {
		number++
		var resource struct{ ID, Needs string }
		if err := json.Unmarshal([]byte(line), &resource); err != nil {
			errs = append(errs, fmt.Sprintf(`{"name":"error","part":[{"name":"line","valueInteger":%d},{"name":"outcome","resource":{"issue":[{"details":{"coding":[{"code":"unparseable_resource"}]},"diagnostics":"bad"}]}}]}`, number))
			failed++
			continue
		}
		if resource.Needs != "" && !s.records[resource.Needs] && !together[resource.Needs] {
			errs = append(errs, fmt.Sprintf(`{"name":"error","part":[{"name":"line","valueInteger":%d},{"name":"outcome","resource":{"issue":[{"details":{"coding":[{"code":"reference_not_found"}]},"diagnostics":"none"}]}}]}`, number))
			failed++
			continue
		}
		s.records[resource.ID] = true
		if s.last == nil {
			s.last = map[string]string{}
		}
		s.last[strings.ToLower(resource.ID)] = strings.TrimSpace(line)
		created++
	}
	fmt.Fprintf(w, `{"parameter":[{"name":"created","valueInteger":%d},{"name":"failed","valueInteger":%d}%s]}`, created, failed, strings.Join(append([]string{""}, errs...), ","))
}

// importInto imports files into a site.
func importInto(t *testing.T, site http.Handler, directory string) (map[string]int, error) {
	t.Helper()
	return runImport(t, site, directory, false)
}

func runImport(t *testing.T, site http.Handler, directory string, dryRun bool) (map[string]int, error) {
	t.Helper()
	server := httptest.NewServer(site)
	defer server.Close()
	client, err := siteapi.New(siteapi.Config{BaseURL: server.URL, Token: func(context.Context) (string, error) { return "token", nil }})
	if err != nil {
		t.Fatal(err)
	}
	return Import(t.Context(), client, "https://site", directory, dryRun, &Progress{Out: io.Discard, Now: time.Now})
}

func write(t *testing.T, directory, name string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(directory, name), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestImportAcrossFiles(t *testing.T) {
	directory := t.TempDir()
	// Organization comes before Patient. o1 refers to p1, p1 to o1, and o2 to a record that is nowhere.
	write(t, directory, "Organization.ndjson", `{"id":"o1","needs":"p1"}`, `{"id":"o2","needs":"none"}`)
	write(t, directory, "Patient.ndjson", `{"id":"p1","needs":"o1"}`, `{"id":`, `{"id":"p2","needs":"p1"}`)
	site := &enforcing{records: map[string]bool{}, busy: 2}
	counts, err := importInto(t, site, directory)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"created": 3, "failed": 2}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"o1": true, "p1": true, "p2": true}, site.records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(filepath.Join(directory, ErrorsName))
	want := `{"file":"Patient.ndjson","line":2,"code":"unparseable_resource","message":"bad"}
{"file":"Organization.ndjson","line":2,"code":"reference_not_found","message":"none"}
`
	if diff := cmp.Diff(want, string(text)); diff != "" || err != nil {
		t.Errorf("errors (-want +got):\n%s%v", diff, err)
	}
	if _, err := os.Stat(filepath.Join(directory, importState)); err == nil {
		t.Error("the state remains")
	}
}

// TestImportGoesOn interrupts an import, and checks that the rest is sent, and each error is reported
// once.
func TestImportGoesOn(t *testing.T) {
	directory := t.TempDir()
	var lines []string
	for i := range 1000 {
		line := fmt.Sprintf(`{"id":"p%d"}`, i)
		if i%100 == 0 {
			line = "{"
		}
		lines = append(lines, line)
	}
	write(t, directory, "Patient.ndjson", lines...)
	site := &enforcing{records: map[string]bool{}}
	failing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site.mu.Lock()
		over := site.requests >= 3
		site.mu.Unlock()
		if over {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		site.ServeHTTP(w, r)
	})
	if _, err := importInto(t, failing, directory); err == nil || !strings.Contains(err.Error(), "403") {
		t.Fatalf("error %v, want 403", err)
	}
	counts, err := importInto(t, site, directory)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"created": 990, "failed": 10}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if len(site.records) != 990 {
		t.Errorf("%d records, want 990", len(site.records))
	}
	text, err := os.ReadFile(filepath.Join(directory, ErrorsName))
	if got := bytes.Count(text, []byte("\n")); got != 10 || err != nil {
		t.Errorf("%d errors, want 10: %s%v", got, text, err)
	}
}

// TestImportOfOtherFiles refuses to continue an import whose files were replaced since.
func TestImportOfOtherFiles(t *testing.T) {
	lines := func(prefix string, count int) []string {
		var lines []string
		for i := range count {
			lines = append(lines, fmt.Sprintf(`{"id":"%s%d"}`, prefix, i))
		}
		return lines
	}
	fhir := func(lines []string) func(*testing.T, string) {
		return func(t *testing.T, directory string) { write(t, directory, "Patient.ndjson", lines...) }
	}
	native := func(lines []string) func(*testing.T, string) {
		return func(t *testing.T, directory string) {
			const name = "records.00001.ndjson"
			write(t, directory, name, lines...)
			sum, err := DigestOf(filepath.Join(directory, name))
			if err != nil {
				t.Fatal(err)
			}
			write(t, directory, ManifestName, fmt.Sprintf(`{"format":%q,"sha256":%q,"files":[{"name":%q,"sha256":%q}]}`, NativeFormat, sum, name, sum))
		}
	}
	const count = portionLines + 1
	for _, test := range []struct {
		name          string
		before, after func(*testing.T, string)
		want          string
	}{
		{"the same", fhir(lines("p", count)), fhir(lines("p", count)), ""},
		{"another size", fhir(lines("p", count)), fhir(lines("p", count+1)), "an interrupted import of other files"},
		{"the same backup", native(lines("p", count)), native(lines("p", count)), ""},
		{"another backup", native(lines("p", count)), native(lines("q", count)), "an interrupted import of other files"},
	} {
		t.Run(test.name, func(t *testing.T) {
			directory := t.TempDir()
			test.before(t, directory)
			site := &enforcing{records: map[string]bool{}}
			refusing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if bytes.Count(body, []byte("\n")) < portionLines { // the second portion
					w.WriteHeader(http.StatusForbidden)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				site.ServeHTTP(w, r)
			})
			if _, err := importInto(t, refusing, directory); err == nil || !strings.Contains(err.Error(), "403") {
				t.Fatalf("error %v, want 403", err)
			}
			test.after(t, directory)
			_, err := importInto(t, site, directory)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// TestImportOfInterruptedExport refuses a folder with an interrupted export, which has only some of the
// records.
func TestImportOfInterruptedExport(t *testing.T) {
	directory := t.TempDir()
	write(t, directory, "Patient.00001.ndjson", `{"id":"p1"}`)
	if err := saveState(directory, exportState, exportProgress{ID: "1", Site: "https://site"}); err != nil {
		t.Fatal(err)
	}
	site := &enforcing{records: map[string]bool{}}
	_, err := importInto(t, site, directory)
	if err == nil || !strings.Contains(err.Error(), "has an interrupted export") || len(site.records) > 0 {
		t.Errorf("error %v with %d records, want one about the interrupted export", err, len(site.records))
	}
}

// TestImportKeepsOrder checks that the lines of a record arrive in the order of the files, although
// requests are concurrent.
func TestImportKeepsOrder(t *testing.T) {
	directory := t.TempDir()
	write(t, directory, "Patient.1.ndjson", `{"resourceType":"Patient","id":"P1","active":false}`)
	write(t, directory, "Patient.2.ndjson", `{"resourceType":"Patient","id":"p2"}`, `{"active":true,"id":"p1","resourceType":"Patient"}`)
	write(t, directory, "Person.ndjson", `{"resourceType":"Person","id":"p1"}`)
	arrived := make(chan struct{}) // closed when the request arrives that has only another record
	var mu sync.Mutex
	var order []string
	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(body), "Person"):
			close(arrived)
		case strings.Contains(string(body), "false"):
			<-arrived
			time.Sleep(50 * time.Millisecond) // a request that does not wait for this one would be earlier
			fallthrough
		default:
			mu.Lock()
			defer mu.Unlock()
			order = append(order, string(body))
		}
		fmt.Fprint(w, `{}`)
	})
	if _, err := importInto(t, site, directory); err != nil {
		t.Fatal(err)
	}
	if len(order) != 2 || !strings.Contains(order[1], "true") {
		t.Errorf("the requests with the record arrived as %q", order)
	}
}

// TestImportOfSupersededLine checks that a line which waits for a reference does not replace a later line of its
// record, in the same request and in a later one.
func TestImportOfSupersededLine(t *testing.T) {
	for name, files := range map[string][2][]string{
		"one request":  {{`{"id":"p1","needs":"o1"}`, `{"id":"P1"}`}, nil},
		"two requests": {{`{"id":"p1","needs":"o1"}`}, {`{"id":"P1"}`}},
		"both wait":    {{`{"id":"P1","needs":"o1","n":1}`}, {`{"id":"P1","needs":"o1","n":2}`}},
	} {
		directory := t.TempDir()
		write(t, directory, "Patient.1.ndjson", files[0]...)
		write(t, directory, "Patient.2.ndjson", files[1]...)
		write(t, directory, "Zone.ndjson", `{"id":"o1"}`)
		site := &enforcing{records: map[string]bool{}}
		var patients atomic.Int64 // lines that were sent
		counts, err := importInto(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte(`"o1"}`)) && !bytes.Contains(body, []byte("needs")) && patients.Load() < 2 {
				w.Header().Set("Retry-After", "0") // o1 comes after the lines that need it
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			site.ServeHTTP(w, r)
			patients.Add(int64(bytes.Count(body, []byte("P1")) + bytes.Count(body, []byte("p1"))))
		}), directory)
		if err != nil {
			t.Fatal(err)
		}
		lines := slices.Concat(files[0], files[1])
		if last := site.last["p1"]; last != lines[1] {
			t.Errorf("%s: the record has the line %s, want %s", name, last, lines[1])
		}
		if sum := counts["created"] + counts["unchanged"]; sum != 3 || counts["failed"] != 0 {
			t.Errorf("%s: counts %v, want 3 lines created or unchanged", name, counts)
		}
	}
}

// TestImportOfLinks checks that files which are symbolic links are imported, as a volume of a ConfigMap
// has them, and that a link to a missing file is an error.
func TestImportOfLinks(t *testing.T) {
	const name = "records.00001.ndjson"
	line := `{"id":"p1"}`
	for _, native := range []bool{false, true} {
		directory, other := t.TempDir(), t.TempDir()
		write(t, other, name, line)
		if err := os.Symlink(filepath.Join(other, name), filepath.Join(directory, name)); err != nil {
			t.Fatal(err)
		}
		if native {
			sum, err := DigestOf(filepath.Join(other, name))
			if err != nil {
				t.Fatal(err)
			}
			write(t, directory, ManifestName, fmt.Sprintf(`{"format":%q,"sha256":%q,"files":[{"name":%q,"sha256":%q}]}`, NativeFormat, sum, name, sum))
		}
		write(t, directory, "records.00002.ndjson") // an import without the first file would succeed
		var sent atomic.Int64
		counting := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent.Add(int64(bytes.Count(body, []byte(line))))
			fmt.Fprint(w, `{}`)
		})
		if _, err := importInto(t, counting, directory); err != nil || sent.Load() != 1 {
			t.Errorf("native %t: %d lines of the link were sent, want 1; error %v", native, sent.Load(), err)
		}
		if err := os.Remove(filepath.Join(other, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := importInto(t, counting, directory); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("native %t: error %v, want one about %s", native, err, name)
		}
	}
}

func TestProgress(t *testing.T) {
	now := time.Date(2031, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		terminal bool
		want     string
	}{
		{false, " 25 %  100 records  10/s  30s left\nstop\n"},
		{true, "\r[=======                       ]  25 %  100 records  10/s  30s left\r" + strings.Repeat(" ", 67) + "\rstop\n"},
	} {
		var out bytes.Buffer
		at := now
		p := &Progress{Out: &out, Terminal: test.terminal, Now: func() time.Time { return at }}
		p.Begin(0, 400)
		at = at.Add(10 * time.Second)
		p.Add(100, 100)
		p.Add(100, 100) // too soon
		p.Say("stop")
		p.End()
		if diff := cmp.Diff(test.want, out.String()); diff != "" {
			t.Errorf("terminal %t (-want +got):\n%s", test.terminal, diff)
		}
	}
}

// TestDryRunKeepsErrors refuses a dry run in a folder with an interrupted import, whose errors it would
// replace.
func TestDryRunKeepsErrors(t *testing.T) {
	directory := t.TempDir()
	write(t, directory, "Patient.ndjson", `{"id":"p1"}`)
	write(t, directory, ErrorsName, `{"file":"Patient.ndjson","line":7}`)
	if err := saveState(directory, importState, importProgress{Site: "https://site"}); err != nil {
		t.Fatal(err)
	}
	_, err := runImport(t, &enforcing{records: map[string]bool{}}, directory, true)
	if err == nil || !strings.Contains(err.Error(), "interrupted import into https://site") {
		t.Errorf("error %v, want one about the interrupted import", err)
	}
	if text, err := os.ReadFile(filepath.Join(directory, ErrorsName)); len(text) == 0 || err != nil {
		t.Errorf("the errors are %q, %v", text, err)
	}
}
