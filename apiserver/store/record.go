package store

import (
	"time"
)

// Key names a record within its site. Ids that differ only in case are one
// record: engines compare ID in lower case and keep the spelling first stored.
type Key struct {
	Type string
	ID   string
}

// Body is the JSON text of a record, kept byte for byte. Its "id" is the empty
// string at IDOffset and its meta object opens at MetaOffset, both offsets just
// behind the opening quote or brace, so that a facade splices id, versionId and
// lastUpdated in when it answers. Engines store the three fields and compare
// bodies by SameValue, nothing else.
type Body struct {
	JSON       []byte
	IDOffset   int
	MetaOffset int
}

// Method is the HTTP method of the interaction that made a version, as history tells it.
type Method string

// The methods that make a version.
const (
	MethodPost   Method = "POST"
	MethodPut    Method = "PUT"
	MethodPatch  Method = "PATCH"
	MethodDelete Method = "DELETE"
)

// Record is one version of one record.
type Record struct {
	// Key with the spelling of the id that was first stored.
	Key Key
	// UID is the record's own; created again after a delete it has another.
	UID string
	// Version counts content changes: 1, 2, 3 … A delete makes a version too.
	Version int64
	// Revision is opaque and changes with every write; set on newest versions only.
	Revision string
	// Created is when the record was created (again); Updated is when this
	// version was written, later than every earlier one. Both UTC, in milliseconds.
	Created, Updated time.Time
	// Method is the interaction that made this version.
	Method Method
	// Deleted marks a tombstone, which has no body.
	Deleted bool
	Body    Body
	// Claims are those the record holds.
	Claims []Claim
	// Metadata is what an object of the cluster that shows the record has beside it, as text
	// that engines keep and do not read; nil where nobody wrote any. MetadataVersion is the
	// version that the record was at when it was written. Set on newest versions only.
	Metadata        []byte
	MetadataVersion int64
}

// Claim is an exclusive hold on a line: on all of it (From and Until zero), as a
// name, or on a half-open interval [From, Until) of it. Claims of different
// records on one line never overlap.
type Claim struct {
	Line        string
	From, Until time.Time
	// Expires is when the claim ends by itself; zero: when its record gives it up.
	Expires time.Time
}

// Overlaps reports whether two claims on the same line exclude each other.
func (c Claim) Overlaps(other Claim) bool {
	return c.startsBefore(other) && other.startsBefore(c)
}

// startsBefore reports whether c starts before other ends; a zero bound is infinite.
func (c Claim) startsBefore(other Claim) bool {
	return c.From.IsZero() || other.Until.IsZero() || c.From.Before(other.Until)
}

// SameInterval reports whether two claims cover the same part of the same line.
func (c Claim) SameInterval(other Claim) bool {
	return c.Line == other.Line && c.From.Equal(other.From) && c.Until.Equal(other.Until)
}
