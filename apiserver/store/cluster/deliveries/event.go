// Package deliveries delivers the events in the Records of etcd-backed sites to webhooks. It makes the
// attempts of deliveries when they are due, and stores the results in WebhookDeliveries and
// WebhookDeliveryLogs. It relays events: when each delivery of an event is in a WebhookDelivery or a
// WebhookDeliveryLog, it removes the event from its Record. A delivery that succeeds at once usually has
// no WebhookDelivery. The package depends neither on HTTP nor on how records are written. See
// docs/decisions/0017-webhooks.md.
package deliveries

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

const (
	// EventType is the type of the records that hold the events that clients post.
	EventType = "Event"
	// MaxPerWrite is the maximum number of events of one write. A write with more events fails.
	MaxPerWrite = 1000
	// MaxEventBytes is the maximum size (Size) of the events in one Record, in bytes. A write that
	// would exceed it fails with *store.LimitError. In base64, and together with the largest allowed
	// body, these events stay below the 1.5 MiB to which etcd limits a request.
	MaxEventBytes = 256 << 10
	// eventOverhead is the estimated size in bytes of the fixed fields of an event in a Record.
	eventOverhead = 256
)

// Pend returns an event in the form in which its Record holds it. position is the index of the
// event among the events of its write. version is the version of the record that the write makes.
// at is the time of the write.
func Pend(e store.Event, position int, version int64, at time.Time) recordsv1.PendingEvent {
	const sequence = "0"
	offset := e.Envelope.SequenceOffset
	for _, gap := range e.Envelope.TimeOffsets {
		if gap < e.Envelope.SequenceOffset {
			offset += len(store.EnvelopeTime)
		}
	}
	if gap := e.Envelope.VersionOffset; gap > 0 && gap < e.Envelope.SequenceOffset {
		offset += len(strconv.FormatInt(version, 10))
	}
	text := slices.Delete(e.Envelope.Fill(0, version, at), offset, offset+len(sequence))
	return recordsv1.PendingEvent{
		ID: e.ID, Type: e.Type, Subject: e.Subject, Targets: e.Targets, Restricted: e.Restricted,
		Accepted: metav1.NewMicroTime(at), Position: int32(position),
		Envelope: objects.Compress(text, nil), SequenceOffset: int32(offset),
	}
}

// Carry returns the pending events of a Record in the form in which the write that replaces the Record
// must keep them. resourceVersion is the resourceVersion at which the Record was read. The write must
// fail if the Record has another resourceVersion by then.
func Carry(events []recordsv1.PendingEvent, resourceVersion string) []recordsv1.PendingEvent {
	carried := slices.Clone(events)
	for i := range carried {
		if carried[i].ResourceVersion == "" {
			carried[i].ResourceVersion = resourceVersion
		}
	}
	return carried
}

// Accept returns a pending event with its sequence, as it is delivered. resourceVersion is the
// resourceVersion at which the Record of the event was read.
func Accept(e *recordsv1.PendingEvent, resourceVersion string) (store.AcceptedEvent, error) {
	sequence, err := Sequence(e, resourceVersion)
	if err != nil {
		return store.AcceptedEvent{}, err
	}
	text, err := objects.Decompress(e.Envelope)
	if err != nil {
		return store.AcceptedEvent{}, fmt.Errorf("decompress the envelope of event %s: %w", e.ID, err)
	}
	return store.AcceptedEvent{
		Sequence: sequence, Accepted: e.Accepted.UTC(), ID: e.ID, Type: e.Type, Subject: e.Subject,
		Targets: e.Targets, Restricted: e.Restricted,
		Envelope: store.Envelope{JSON: text, SequenceOffset: int(e.SequenceOffset)}.Fill(sequence, 0, time.Time{}),
	}, nil
}

// Sequence returns the sequence of a pending event. resourceVersion is the resourceVersion at which the
// Record of the event was read.
func Sequence(e *recordsv1.PendingEvent, resourceVersion string) (int64, error) {
	return sequence(cmp.Or(e.ResourceVersion, resourceVersion), e.Position)
}

// sequence returns the sequence of an event: the resourceVersion of the write that made the event,
// followed by its position among the events of the write, in three digits. Later writes of a
// resource have greater resourceVersions (KEP-5504).
func sequence(resourceVersion string, position int32) (int64, error) {
	version, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil || version <= 0 || position < 0 || position >= MaxPerWrite {
		return 0, fmt.Errorf("compute the sequence of an event: resourceVersion %q or position %d is invalid", resourceVersion, position)
	}
	return version*MaxPerWrite + int64(position), nil
}

// Size returns the estimated size in bytes of events in a Record, with compressed envelopes, and the
// number of deliveries that the events will have. An event without targets counts as one delivery.
func Size(events []recordsv1.PendingEvent) (bytes, deliveries int64) {
	for i := range events {
		e := &events[i]
		bytes += int64(eventOverhead + len(e.ID) + len(e.Type) + len(e.Subject) + len(e.Envelope))
		for _, target := range e.Targets {
			bytes += int64(len(target) + len(`"",`))
		}
		deliveries += int64(max(1, len(e.Targets)))
	}
	return bytes, deliveries
}
