// Package keyring reads the secret keys that all API servers share. A ring has several keys, so
// that the controller can rotate them while servers run: the first key signs, and all keys verify.
package keyring

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Size is the length of a key in bytes.
const Size = 32

// reloadInterval is how long a ring is used before its file is read again. The controller adds a
// key to the file one hour before it becomes the first, so that all servers know it by then.
const reloadInterval = 10 * time.Second

// Source returns the keys of a ring, at least one. The first key signs, and each key can verify. A
// Source is safe for concurrent use.
type Source func() [][]byte

// Fixed returns a Source whose keys never change.
func Fixed(keys ...[]byte) Source { return func() [][]byte { return keys } }

// Parse parses the text of a ring, which has one key of Size bytes in base64 on each line. Text after
// a space in a line is ignored.
func Parse(text []byte) ([][]byte, error) {
	var keys [][]byte
	for line := range bytes.Lines(bytes.TrimSpace(text)) {
		encoded, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		key, err := base64.StdEncoding.DecodeString(string(encoded))
		if err != nil || len(key) != Size {
			return nil, fmt.Errorf("line %d does not begin with a key of %d bytes in base64", len(keys)+1, Size)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("there is no key: write %d bytes in base64", Size)
	}
	return keys, nil
}

// Open reads a ring from a file. The Source reloads the file at most once per reloadInterval. If that
// fails, it logs the error and keeps the previous keys.
func Open(path string) (Source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	keys, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &file{path: path, keys: keys, read: time.Now()}
	return f.ring, nil
}

type file struct {
	path string
	mu   sync.Mutex
	keys [][]byte
	read time.Time
}

func (f *file) ring() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.read) < reloadInterval {
		return f.keys
	}
	f.read = time.Now()
	text, err := os.ReadFile(f.path)
	if err == nil {
		var keys [][]byte
		if keys, err = Parse(text); err == nil {
			f.keys = keys
		}
	}
	if err != nil {
		slog.Error("cannot reload the keys; the previous keys stay in use", "file", f.path, "error", err)
	}
	return f.keys
}

// Derive returns a Source for a purpose, whose keys are derived from the keys of another Source by
// HMAC-SHA256. It is for installations with a single key file.
func Derive(from Source, purpose string) Source {
	return func() [][]byte {
		var keys [][]byte
		for _, key := range from() {
			mac := hmac.New(sha256.New, key)
			mac.Write([]byte("paddock key\x00" + purpose))
			keys = append(keys, mac.Sum(nil))
		}
		return keys
	}
}
