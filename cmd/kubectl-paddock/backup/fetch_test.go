package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-health/paddock/cmd/kubectl-paddock/bulk"
)

// objects is a server of the S3 API with objects by name, in the bucket "backups". The names of objects
// begin with "oak/" and the name of a backup.
type objects map[string]string

func (o objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("list-type") {
		folders := map[string]bool{}
		for name := range o {
			folders[path.Dir(name)] = true
		}
		fmt.Fprint(w, `<ListBucketResult><Name>backups</Name><Prefix>oak/</Prefix><Delimiter>/</Delimiter>`)
		for folder := range folders {
			fmt.Fprintf(w, `<CommonPrefixes><Prefix>%s/</Prefix></CommonPrefixes>`, folder)
		}
		fmt.Fprint(w, `</ListBucketResult>`)
		return
	}
	content, ok := o[strings.TrimPrefix(r.URL.Path, "/backups/")]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `<Error><Code>NoSuchKey</Code></Error>`)
		return
	}
	w.Header().Set("Last-Modified", "Sat, 01 Mar 2031 00:00:00 GMT")
	w.Header().Set("ETag", `"1"`)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
}

// add adds a backup with one file.
func (o objects) add(name, lines string) {
	sum := sha256.Sum256([]byte(lines))
	o["oak/"+name+"/records.00001.ndjson"] = lines
	o["oak/"+name+"/"+bulk.ManifestName] = fmt.Sprintf(`{"format":%q,"files":[{"name":"records.00001.ndjson","bytes":%d,"sha256":%q}]}`,
		bulk.NativeFormat, len(lines), hex.EncodeToString(sum[:]))
}

const (
	older = "2031-03-01T02-17-00.123Z-5f1c2ab4"
	newer = "2031-03-02T02-17-00.123Z-5f1c2ab4"
)

// fetch runs Fetch at an address below the bucket.
func fetch(t *testing.T, server objects, address, directory string) (string, error) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	listening := httptest.NewServer(server)
	defer listening.Close()
	config := Config{Address: "s3://backups/" + address, Endpoint: listening.URL, Region: "us-east-1"}
	return Fetch(t.Context(), config, directory, &bulk.Progress{Out: io.Discard, Now: time.Now})
}

// TestFetchGoesOn checks that a download that was interrupted before a newer backup was complete says
// how to continue, and can be continued so.
func TestFetchGoesOn(t *testing.T) {
	directory := t.TempDir()
	server := objects{}
	server.add(older, "old")
	file := "oak/" + older + "/records.00001.ndjson"
	lines := server[file]
	delete(server, file)
	if _, err := fetch(t, server, "oak", directory); err == nil {
		t.Fatal("a download without a file of the backup succeeded")
	}
	server[file] = lines
	server.add(newer, "new")
	_, err := fetch(t, server, "oak", directory)
	if want := "--from s3://backups/oak/" + older; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
	if name, err := fetch(t, server, "oak/"+older, directory); name != older || err != nil {
		t.Errorf("got %s, error %v, want %s", name, err, older)
	}
	if text, err := os.ReadFile(filepath.Join(directory, "records.00001.ndjson")); string(text) != lines {
		t.Errorf("the file has %q, error %v, want %q", text, err, lines)
	}
	if err := os.WriteFile(filepath.Join(directory, bulk.ManifestName), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fetch(t, server, "oak", directory); err == nil || !strings.Contains(err.Error(), "has another export") {
		t.Errorf("error %v, want one about another export", err)
	}
}

// TestFetchWritesWholeManifest checks that a manifest which cannot be written leaves the directory
// without one, so that the download can be repeated.
func TestFetchWritesWholeManifest(t *testing.T) {
	directory := t.TempDir()
	server := objects{}
	server.add(older, "old")
	temporary := filepath.Join(directory, bulk.ManifestName+".part")
	if err := os.Mkdir(temporary, 0o700); err != nil { // no file can be written under this name
		t.Fatal(err)
	}
	if _, err := fetch(t, server, "oak", directory); err == nil {
		t.Error("a download succeeded without its manifest")
	}
	entries, err := os.ReadDir(directory)
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == bulk.ManifestName }) {
		t.Errorf("the directory has %v, error %v, want no manifest", entries, err)
	}
	if err := os.Remove(temporary); err != nil {
		t.Fatal(err)
	}
	if _, err := fetch(t, server, "oak", directory); err != nil {
		t.Error(err)
	}
}

// TestFetchLocks checks that a directory that another process uses stays as it is.
func TestFetchLocks(t *testing.T) {
	directory := t.TempDir()
	server := objects{}
	server.add(older, "old")
	lock, err := bulk.Lock(directory)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fetch(t, server, "oak", directory); err == nil || !strings.Contains(err.Error(), "is in use by another process") {
		t.Errorf("error %v, want one about another process", err)
	}
	if _, err := os.Stat(filepath.Join(directory, bulk.ManifestName)); err == nil {
		t.Error("there is a manifest")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := fetch(t, server, "oak", directory); err != nil {
		t.Error(err)
	}
}
