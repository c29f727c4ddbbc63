package postgres

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

func TestBodies(t *testing.T) {
	for name, text := range map[string]string{
		"empty":             "",
		"short":             `{}`,
		"of common words":   `{"resourceType":"Patient","id":"","meta":{"versionId":"","lastUpdated":""},"active":true,"gender":"male"}`,
		"repeating":         strings.Repeat(`{"name":[{"family":"Smith"}]},`, 5000),
		"not to be packed":  "\x00\x9f\x17\x03\xfe\x88",
		"text of all kinds": `{"div":"é 漢字 \u0000"}`,
	} {
		t.Run(name, func(t *testing.T) {
			want := store.Body{JSON: []byte(text), IDOffset: 300, MetaOffset: 1}
			packed := packBody(want)
			got, err := unpackBody(packed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.JSON, got.JSON, cmp.Comparer(bytes.Equal)); diff != "" || got.IDOffset != 300 || got.MetaOffset != 1 {
				t.Errorf("%d, %d, (-want +got):\n%s", got.IDOffset, got.MetaOffset, diff)
			}
			if len(packed) > len(text)+16 {
				t.Errorf("%d bytes were packed into %d", len(text), len(packed))
			}
		})
	}
}

// TestDictionary fails if the dictionary has changed. Stored bodies could then not be read.
func TestDictionary(t *testing.T) {
	const want = "db7f140c00c9210bcc83114f471b5daba2fb639240cae948d33f5e1791cd9b4d"
	if got := fmt.Sprintf("%x", sha256.Sum256(dictionary.Bytes())); got != want {
		t.Errorf("the dictionary is %s, and stored bodies need %s: make another codec for another dictionary", got, want)
	}
}

func FuzzUnpackBody(f *testing.F) {
	for _, text := range []string{"", `{}`, `{"resourceType":"Patient","active":true,"gender":"male"}`} {
		f.Add(packBody(store.Body{JSON: []byte(text), IDOffset: 5, MetaOffset: 9}))
	}
	f.Add([]byte{codecS2, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, packed []byte) {
		body, err := unpackBody(packed)
		if err != nil {
			if !errors.Is(err, errBadBody) {
				t.Fatalf("%x: %v", packed, err)
			}
			return
		}
		if packed[0] != codecNone { // a tombstone has no body to pack again
			if again, err := unpackBody(packBody(body)); err != nil || !cmp.Equal(again, body) {
				t.Fatalf("%x: %v", packed, err)
			}
		}
	})
}
