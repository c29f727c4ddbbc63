package store

import (
	"slices"
	"strconv"
	"time"
)

// Event is an event that an operation makes. The engine stores it in the same atomic write as the
// record, and keeps it until it has stored a delivery for each target.
type Event struct {
	// ID identifies the event within its site. Deliveries carry it in the header webhook-id.
	ID string
	// Type is the type of the event, such as user.created.
	Type string
	// Subject is what the event is about, such as Practitioner/1. The sequences of the
	// events of one subject increase in the order of their writes. Events without a subject have no
	// guaranteed order.
	Subject string
	// Targets are the ids of the webhooks to which the event is delivered.
	Targets []string
	// Restricted is true if only webhooks with clearance Privileged receive the data of the event.
	Restricted bool
	// Envelope is the JSON text to deliver, without the values that only the engine knows.
	Envelope Envelope
}

// Envelope is the JSON text of an event without its sequence, time and version, which Fill inserts.
// The time and the version are those of the write. The engine may insert the sequence later, when it
// makes the deliveries of the event. Offsets are in bytes of JSON.
type Envelope struct {
	JSON []byte
	// SequenceOffset is the offset at which Fill inserts the sequence of the event, as a decimal
	// number.
	SequenceOffset int
	// TimeOffsets are the offsets at which Fill inserts the time of the write, in ascending order.
	// Each is between two quotation marks.
	TimeOffsets []int
	// VersionOffset is the offset at which Fill inserts the version of the record, as a decimal
	// number. It is 0 if the text does not contain the version.
	VersionOffset int
}

// EnvelopeTime is the layout of the time in an envelope: RFC 3339 with milliseconds.
const EnvelopeTime = "2006-01-02T15:04:05.000Z"

// Fill returns the JSON text with the sequence, the version of the record and the time of the write
// inserted.
func (e Envelope) Fill(sequence, version int64, at time.Time) []byte {
	type insertion struct {
		offset int
		value  string
	}
	insertions := []insertion{{e.SequenceOffset, strconv.FormatInt(sequence, 10)}}
	if e.VersionOffset > 0 {
		insertions = append(insertions, insertion{e.VersionOffset, strconv.FormatInt(version, 10)})
	}
	for _, offset := range e.TimeOffsets {
		insertions = append(insertions, insertion{offset, at.UTC().Format(EnvelopeTime)})
	}
	slices.SortFunc(insertions, func(a, b insertion) int { return a.offset - b.offset })
	var filled []byte
	from := 0
	for _, i := range insertions {
		filled = append(append(filled, e.JSON[from:i.offset]...), i.value...)
		from = i.offset
	}
	return append(filled, e.JSON[from:]...)
}

// Change is what an operation does to a record. It is the argument of Op.Events.
type Change struct {
	Outcome Outcome
	// Before is the version that the operation supersedes. It is nil if there is none.
	Before *Record
	// After is the version that the operation makes. It is nil after a Purge. Created, Updated, UID
	// and Revision are zero, because they are known only after the write.
	After *Record
}

// AcceptedEvent is a stored Event. ID, Type, Subject, Targets and Restricted are those of the Event.
type AcceptedEvent struct {
	// Sequence orders the events of one subject. A later event of the subject has a greater
	// sequence, even if the record was purged in between.
	Sequence int64
	// Accepted is the time of the write, in whole milliseconds.
	Accepted   time.Time
	ID         string
	Type       string
	Subject    string
	Targets    []string
	Restricted bool
	// Envelope is the complete JSON text to deliver: the result of Envelope.Fill, kept byte for byte.
	Envelope []byte
}
