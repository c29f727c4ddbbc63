package ahds

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/slot"
	"github.com/paddock-health/paddock/apiserver/store"
)

// stored is the body of a record: the fields that clients set, byte for byte, and data of the
// service. Id and times are in the store.Record.
type stored struct {
	content schema.Content
	service serviceData
}

// serviceData is data of a record or resource that clients do not see.
type serviceData struct {
	// Fingerprint is the fingerprint of the content that the record was created with.
	Fingerprint string `json:"made"`
	// Keys are the idempotency keys of recent changes.
	Keys []usedKey  `json:"keys,omitempty"`
	Hold *slot.Hold `json:"hold,omitempty"`
	// Owner is the client that last wrote a feed.
	Owner *feedOwner `json:"maker,omitempty"`
}

const (
	memberContent = "content"
	memberService = "service"
)

// encode returns the body of a record.
func (k *kind) encode(s stored) (store.Body, error) {
	service, err := json.Marshal(s.service)
	if err != nil {
		return store.Body{}, fmt.Errorf("encode a record of type %s: %w", k.recordType, err)
	}
	content := schema.NewWriter(nil)
	k.fields.Append(content, s.content)
	whole := schema.NewWriter(nil)
	whole.Raw(memberContent, content.Done())
	whole.Raw(memberService, service)
	return store.Body{JSON: whole.Done()}, nil
}

var errBadBody = errors.New("decode stored record")

// decode parses the body of a record. Errors: errBadBody.
func (k *kind) decode(body []byte) (stored, error) {
	var s stored
	object, err := schema.Members(body)
	if err == nil {
		s.content, err = k.fields.ContentOf(object.Get(memberContent))
	}
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(object.Get(memberService))).Decode(&s.service)
	}
	if err != nil {
		return stored{}, fmt.Errorf("%w of type %s: %w", errBadBody, k.recordType, err)
	}
	return s, nil
}

// fingerprint returns a hash of a content.
func (k *kind) fingerprint(content schema.Content) string {
	w := schema.NewWriter(nil)
	k.fields.Append(w, content)
	return digest(w.Done())
}

// sameValue reports whether two contents with the given fields are the same JSON value. Spaces, escapes
// and the order of members do not count.
func sameValue(fields schema.Fields, one, other schema.Content) bool {
	body := func(content schema.Content) store.Body {
		w := schema.NewWriter(nil)
		fields.Append(w, content)
		return store.Body{JSON: w.Done()}
	}
	return body(one).SameValue(body(other))
}

// digest returns a collision-resistant hash of parts, shortened to 16 bytes.
func digest(parts ...[]byte) string {
	const size = 16
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:", len(part))
		sum.Write(part)
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:size])
}
