// Package history judges what writers and readers recorded while processes were
// killed: whether the versions that are stored in the end can have come from the
// operations. It is pure: it starts nothing, asks nobody and knows no HTTP.
package history

import (
	"fmt"
	"time"
)

// Kind is what an operation does.
type Kind string

// The kinds of operations.
const (
	Put    Kind = "put"
	Delete Kind = "delete"
	Purge  Kind = "purge"
	// Read looks at the newest version.
	Read Kind = "read"
)

// Outcome is what the one who asked knows of an operation.
type Outcome string

// The outcomes of an operation.
const (
	// Acknowledged operations happened.
	Acknowledged Outcome = "acknowledged"
	// Refused operations did not, and never will.
	Refused Outcome = "refused"
	// Unknown operations have no answer: they may have happened and may yet happen.
	Unknown Outcome = "unknown"
)

// Condition is what an operation asks of the record as it finds it.
type Condition struct {
	// Version that the record must have, for a Put also that which deleted it; 0 asks for none.
	Version int64
	// Absent: there must be no live record.
	Absent bool
}

// Operation is one operation with its answer.
type Operation struct {
	Kind   Kind
	Record string
	// Token is the content: what a Put writes, no other operation ever, or what a
	// Read saw.
	Token string
	If    Condition
	// Lines, when not nil, are all that a Put claims for its record. No two records
	// may hold a line.
	Lines []string
	// Criteria, when not empty, are those under which a Put creates a record unless
	// there is one.
	Criteria string
	// Start and End enclose the operation on a clock that never steps back. The
	// End of an Unknown one means nothing.
	Start, End time.Duration
	Outcome    Outcome
	// Unmet: it was refused because the condition did not hold.
	Unmet bool

	// Version is what the answer told: the version made, or seen; 0: there is none.
	Version int64
	// UID is the record's, where the answer told it.
	UID string
	// Deleted: a Read saw a tombstone.
	Deleted bool
	// Made: the operation made Version itself. A Delete that found nothing to
	// delete tells a version too.
	Made bool
}

func (o *Operation) String() string {
	text := fmt.Sprintf("%s %s", o.Kind, o.Record)
	if o.Token != "" {
		text += " " + o.Token
	}
	if o.If.Version != 0 {
		text += fmt.Sprintf(" if at version %d", o.If.Version)
	}
	if o.If.Absent {
		text += " if absent"
	}
	text += fmt.Sprintf(": %s after %v", o.Outcome, o.Start)
	if o.Outcome != Unknown {
		text += fmt.Sprintf(" until %v", o.End)
	}
	if o.Outcome == Acknowledged {
		text += fmt.Sprintf(", version %d", o.Version)
	}
	return text
}

// possiblyDuring reports whether the operation may have happened, in part, between two times.
func (o *Operation) possiblyDuring(start, end time.Duration) bool {
	return o.Outcome != Refused && o.Start < end && (o.Outcome == Unknown || o.End > start)
}

// Version is one version of a record as it was read.
type Version struct {
	Number int64
	UID    string
	// Token is the content, empty in a tombstone.
	Token   string
	Deleted bool
	Updated time.Time
	// Damage says what is wrong with the content; empty when it is whole.
	Damage string
}

// Reading is a record's history as one reader saw it. Without versions, the
// reader was told that there is no such record.
type Reading struct {
	Record string
	// By names the reader.
	By         string
	Start, End time.Duration
	// Final readings are those after all operations came to rest.
	Final bool
	// Versions, oldest first.
	Versions []Version
}

// at returns the version with a number.
func (r *Reading) at(number int64) (Version, bool) {
	for _, v := range r.Versions {
		if v.Number == number {
			return v, true
		}
	}
	return Version{}, false
}

// Newest returns the newest version, if there is one.
func (r *Reading) Newest() (Version, bool) {
	if len(r.Versions) == 0 {
		return Version{}, false
	}
	return r.Versions[len(r.Versions)-1], true
}

// holds reports whether the reading speaks of the record's life under uid.
// Without uids there is one life only.
func (r *Reading) holds(uid string) bool {
	for _, v := range r.Versions {
		if v.UID == uid {
			return true
		}
	}
	return false
}
