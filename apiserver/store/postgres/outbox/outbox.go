// Package outbox encodes events and deliveries for their tables in Postgres. A write of a record
// stores its events in the table outbox. Package queue moves them from there to the tables event
// and delivery.
package outbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// head is the JSON in the column "event": all fields of an event except its envelope.
type head struct {
	ID         string   `json:"id"`
	Type       string   `json:"type"`
	Subject    string   `json:"subject,omitempty"`
	Targets    []string `json:"targets,omitempty"`
	Restricted bool     `json:"restricted,omitempty"`
	// Sequence, Times and Version are the offsets of store.Envelope.
	Sequence int   `json:"sequence,omitempty"`
	Times    []int `json:"times,omitempty"`
	Version  int   `json:"version,omitempty"`
}

// SubjectKey returns the value of the column "subject" of the table event: a hash of a subject
// without regard to case. Different subjects can have the same hash.
func SubjectKey(subject string) int64 {
	sum := sha256.Sum256([]byte(strings.ToLower(subject)))
	return int64(binary.LittleEndian.Uint64(sum[:])) //nolint:gosec // any 64 bits
}

// Pack returns the values of the columns "event" and "envelope" for an event.
func Pack(event store.Event) (packed, envelope []byte) {
	packed, _ = json.Marshal(head{ // cannot fail for the types of these fields
		ID: event.ID, Type: event.Type, Subject: event.Subject, Targets: event.Targets, Restricted: event.Restricted,
		Sequence: event.Envelope.SequenceOffset, Times: event.Envelope.TimeOffsets, Version: event.Envelope.VersionOffset,
	})
	return packed, event.Envelope.JSON
}

// Unpack returns the event of a row of the outbox, with its sequence, time and version inserted
// into the envelope. It always returns the same envelope for the same row.
func Unpack(seq, at, version int64, packed, envelope []byte) (store.AcceptedEvent, error) {
	event, h, err := unpack(seq, at, packed)
	if err != nil {
		return event, err
	}
	gaps := store.Envelope{JSON: envelope, SequenceOffset: h.Sequence, TimeOffsets: h.Times, VersionOffset: h.Version}
	event.Envelope = gaps.Fill(seq, version, event.Accepted)
	return event, nil
}

// UnpackHead returns the event of a row of the table outbox or event, without the envelope.
func UnpackHead(seq, at int64, packed []byte) (store.AcceptedEvent, error) {
	event, _, err := unpack(seq, at, packed)
	return event, err
}

func unpack(seq, at int64, packed []byte) (store.AcceptedEvent, head, error) {
	var h head
	if err := json.Unmarshal(packed, &h); err != nil {
		return store.AcceptedEvent{}, h, fmt.Errorf("read event %d: %w", seq, err)
	}
	return store.AcceptedEvent{
		Sequence: seq, Accepted: time.UnixMilli(at).UTC(),
		ID: h.ID, Type: h.Type, Subject: h.Subject, Targets: h.Targets, Restricted: h.Restricted,
	}, h, nil
}
