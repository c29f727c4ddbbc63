package store

import (
	"strings"
	"time"
)

// Key identifies a record within its site. Ids that differ only in case identify the same record:
// engines compare ID in lower case and keep the spelling that was stored first.
type Key struct {
	Type string
	ID   string
}

// Folded returns the key with the id in lower case, which is the same for all spellings of the id.
func (k Key) Folded() Key { return Key{Type: k.Type, ID: strings.ToLower(k.ID)} }

// Body is the JSON text of a record, kept byte for byte. Its "id" is an empty string, and its
// "meta" has no versionId and no lastUpdated. A facade inserts these values at the offsets when it
// answers. Engines only store the three fields and compare bodies by SameValue.
type Body struct {
	JSON []byte
	// IDOffset is the offset in bytes of JSON directly after the opening quote of the id.
	IDOffset int
	// MetaOffset is the offset in bytes of JSON directly after the opening brace of the meta object.
	MetaOffset int
}

// JobType is the record type of the jobs of exports. Jobs do not count against the limits of a site,
// so that a site at its limits can be exported. The facade limits the number of jobs.
const JobType = "BulkExport"

// Method is the HTTP method of the interaction that made a version. A history Bundle shows it.
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
	// Key has the spelling of the id that was stored first.
	Key Key
	// UID is unique to the record. A record that is created again after a delete has a new UID.
	UID string
	// Version is 1 for the first version and grows by 1 with each change of the body or the claims. A
	// delete makes a version too.
	Version int64
	// Revision is opaque and changes with every write. In the Cluster engine, it can also change between
	// writes, for example when events are relayed. Only newest versions have it.
	Revision string
	// Created is when the record was created, or created again after a delete. Updated is when this
	// version was written, later than all earlier versions. Both are in UTC and whole milliseconds.
	Created, Updated time.Time
	Method           Method
	// Deleted marks a tombstone, which has no body.
	Deleted bool
	Body    Body
	Claims  []Claim
	// Metadata is the Kubernetes metadata of the object that shows the record, as opaque text. It is
	// nil if none was written. Only newest versions have it.
	Metadata []byte
	// MetadataVersion is the version of the record at which Metadata was written.
	MetadataVersion int64
}

// Claim is the exclusive right of a record to a line, or to an interval of it. Claims of different
// records on one line never overlap, unless one of the claims has expired.
type Claim struct {
	// Line is the name of what is claimed, such as the criteria of a conditional create, or a
	// resource that can be booked.
	Line string
	// From and Until are the half-open interval [From, Until). A zero bound is infinite: if both are
	// zero, the claim is on the whole line.
	From, Until time.Time
	// Expires is when the claim ends by itself. If it is zero, the claim ends when its record
	// releases it.
	Expires time.Time
}

// Kind returns the part of Line before the first space. Errors and logs may show only this part: in
// the line of a conditional create the criteria follow, which contain values of records.
func (c Claim) Kind() string {
	kind, _, _ := strings.Cut(c.Line, " ")
	return kind
}

// Overlaps reports whether the intervals of two claims overlap. It does not compare their lines.
func (c Claim) Overlaps(other Claim) bool {
	return c.startsBefore(other) && other.startsBefore(c)
}

// startsBefore reports whether c starts before other ends.
func (c Claim) startsBefore(other Claim) bool {
	return c.From.IsZero() || other.Until.IsZero() || c.From.Before(other.Until)
}

// Same reports whether two claims are on the same interval of the same line until the same time.
func (c Claim) Same(other Claim) bool {
	return c.Line == other.Line && c.From.Equal(other.From) && c.Until.Equal(other.Until) && c.Expires.Equal(other.Expires)
}

// Expired reports whether Expires has been reached at now. A claim without Expires never expires.
func (c Claim) Expired(now time.Time) bool { return !c.Expires.IsZero() && !now.Before(c.Expires) }
