package ahds

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/store"
)

// stored is what the body of a record holds: the fields that clients set, as they were
// sent, and what the service keeps beside. Id and times are the store's.
type stored struct {
	content document.Content
	kept    kept
}

// kept is what the service keeps of a record and does not show.
type kept struct {
	// Made tells what the record was created with.
	Made string `json:"made"`
	// Keys are the idempotency keys of recent changes.
	Keys []usedKey  `json:"keys,omitempty"`
	Hold *slot.Hold `json:"hold,omitempty"`
}

const (
	memberContent = "content"
	memberKept    = "service"
)

// encode makes the body of a record.
func (k *kind) encode(s stored) (store.Body, error) {
	service, err := json.Marshal(s.kept)
	if err != nil {
		return store.Body{}, fmt.Errorf("encode a record: %w", err)
	}
	content := document.NewWriter(nil)
	k.fields.Append(content, s.content)
	whole := document.NewWriter(nil)
	whole.Raw(memberContent, content.Done())
	whole.Raw(memberKept, service)
	return store.Body{JSON: whole.Done()}, nil
}

var errBadBody = errors.New("the stored record cannot be read")

// decode reads the body of a record.
func (k *kind) decode(body []byte) (stored, error) {
	var s stored
	object, err := document.Members(body)
	if err == nil {
		s.content, err = k.fields.ContentOf(object.Get(memberContent))
	}
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(object.Get(memberKept))).Decode(&s.kept)
	}
	if err != nil {
		return stored{}, fmt.Errorf("%w: %w", errBadBody, err)
	}
	return s, nil
}

// fingerprint tells contents apart.
func (k *kind) fingerprint(content document.Content) string {
	w := document.NewWriter(nil)
	k.fields.Append(w, content)
	return digest(w.Done())
}

// digest is a short hash that nobody can find a second text for.
func digest(parts ...[]byte) string {
	const size = 16 // bytes
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:", len(part))
		sum.Write(part)
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:size])
}
