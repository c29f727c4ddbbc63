package keyring

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, Size) }

func encoded(b byte) string { return base64.StdEncoding.EncodeToString(key(b)) }

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want [][]byte
	}{
		"one key":         {encoded(1), [][]byte{key(1)}},
		"white space":     {"\n " + encoded(1) + "\n\n", [][]byte{key(1)}},
		"keys with times": {encoded(2) + " 2026-01-02T03:04:05Z\n" + encoded(1) + " 2025-01-02T03:04:05Z\n", [][]byte{key(2), key(1)}},
		"nothing":         {"", nil},
		"no base64":       {"x", nil},
		"a short key":     {encoded(1)[:40], nil},
		"a bad line":      {encoded(1) + "\nx", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(test.text))
			if (err != nil) != (test.want == nil) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(encoded(1))
	f := &file{path: path, keys: [][]byte{key(1)}, read: time.Now()}
	for _, step := range []struct {
		text string
		age  time.Duration
		want [][]byte
	}{
		{encoded(2) + "\n" + encoded(1), reloadInterval / 2, [][]byte{key(1)}},
		{encoded(2) + "\n" + encoded(1), reloadInterval, [][]byte{key(2), key(1)}},
		{"malformed", reloadInterval, [][]byte{key(2), key(1)}},
	} {
		write(step.text)
		f.read = time.Now().Add(-step.age)
		if diff := cmp.Diff(step.want, f.ring()); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.age, diff)
		}
	}
}

func TestDerive(t *testing.T) {
	page := Fixed(key(1), key(2))
	hold, feed := Derive(page, "hold")(), Derive(page, "feed")()
	seen := map[string]bool{}
	for _, k := range append(append(page(), hold...), feed...) {
		if len(k) != Size || seen[string(k)] {
			t.Errorf("the key %x is short or not the only one", k)
		}
		seen[string(k)] = true
	}
}
