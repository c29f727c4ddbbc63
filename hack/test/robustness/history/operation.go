// Package history checks what writers and readers recorded while processes were killed: whether the
// operations explain the versions that are stored in the end. It has no side effects and does not
// depend on HTTP or on a storage engine.
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
	// Read reads the newest version.
	Read Kind = "read"
)

// Outcome is what the client knows about the effect of an operation.
type Outcome string

// The outcomes of an operation.
const (
	// Acknowledged operations happened.
	Acknowledged Outcome = "acknowledged"
	// Refused operations did not happen and never will.
	Refused Outcome = "refused"
	// Unknown operations have no answer: they may have happened and may yet happen.
	Unknown Outcome = "unknown"
)

// Condition is the precondition of an operation. The zero value is no condition.
type Condition struct {
	// Version is the version that the record must have. For a Put, it may also be the version that
	// deleted the record. 0 means any version.
	Version int64
	// Absent means that there must be no live record.
	Absent bool
}

// Operation is one operation with its answer.
type Operation struct {
	Kind   Kind
	Record string
	// Token is the content that a Put writes or a Read saw. No two Puts write the same token.
	Token string
	If    Condition
	// Lines, if not nil, are all lines that a Put claims for its record. No two records may hold the
	// same line.
	Lines []string
	// Criteria, if not empty, are search criteria: the Put creates a record unless one matches them.
	Criteria string
	// Start and End are the times before and after the operation, on a monotonic clock. The End of an
	// operation with the outcome Unknown has no meaning.
	Start, End time.Duration
	Outcome    Outcome
	// Unmet reports whether the operation was refused because the condition did not hold.
	Unmet bool

	// Version is the version in the answer: the one that the operation made or saw. 0 means none.
	Version int64
	// UID is the uid of the record, if the answer has it.
	UID string
	// Deleted reports whether a Read saw a tombstone.
	Deleted bool
	// Made reports whether the operation made Version. The answer to a Delete that found nothing to
	// delete has a version too.
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
	// Damage says what is wrong with the content. It is empty if nothing is.
	Damage string
}

// Reading is a record's history as one reader saw it. It has no versions if the server answered that
// the record does not exist.
type Reading struct {
	Record string
	// By names the reader.
	By         string
	Start, End time.Duration
	// Final reports whether the reading began after all operations had ended.
	Final bool
	// Versions are in the order of the history, the oldest first.
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

// holds reports whether the reading has a version with the uid.
func (r *Reading) holds(uid string) bool {
	for _, v := range r.Versions {
		if v.UID == uid {
			return true
		}
	}
	return false
}
