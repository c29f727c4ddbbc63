package store

import (
	"bytes"
	"slices"
	"time"
)

// Action is the change that an engine makes to a stored record.
type Action int

const (
	// ActionNone leaves the record as it is.
	ActionNone Action = iota
	// ActionCreate stores the first version of a record.
	ActionCreate
	// ActionUpdate adds a version, which is a tombstone for a Delete. The version that it supersedes
	// may be a tombstone too.
	ActionUpdate
	// ActionAnnotate changes the metadata of the newest version.
	ActionAnnotate
	// ActionPurge removes the record and its history.
	ActionPurge
)

// Decision is what an operation does, given the newest version of its record.
type Decision struct {
	Action  Action
	Outcome Outcome
	// Before is the newest version before the operation. It is nil if there is none.
	Before *Record
	// After is the newest version after the operation. With ActionNone it is Before, or zero if
	// Before is nil. Other actions leave the Revision empty, and those with the outcome Created leave
	// the UID empty: the engine has to set them. With ActionPurge, After has only the key and the
	// version that are removed, and in Updated the time of the removal.
	After Record
}

// Decide returns what an operation does to a record if it is applied at the time now. current is
// the newest version of the record, or nil if there is none. Errors: those of Precondition.Check.
func Decide(op Op, current *Record, now time.Time) (Decision, error) {
	if err := op.If.Check(op.Key, current); err != nil {
		return Decision{}, err
	}
	d := Decision{Before: current}
	switch {
	case current == nil && op.Kind != Put: // there is nothing to remove
	case current == nil:
		d.Action, d.Outcome, d.After = ActionCreate, Created, nextVersion(op, &Record{Key: op.Key, Deleted: true}, now)
	case op.Kind == Purge:
		d.Action, d.Outcome = ActionPurge, Removed
		d.After = Record{Key: current.Key, Version: current.Version, Updated: later(now, current.Updated)}
	case op.Kind == Delete && current.Deleted:
		d.After = *current
	case op.Kind == Delete:
		d.Action, d.Outcome, d.After = ActionUpdate, Removed, nextVersion(op, current, now)
	case current.Deleted:
		d.Action, d.Outcome, d.After = ActionUpdate, Created, nextVersion(op, current, now)
	case !current.Body.SameValue(op.Body), op.Claims != nil && !slices.EqualFunc(current.Claims, op.Claims, Claim.Same):
		d.Action, d.Outcome, d.After = ActionUpdate, Updated, nextVersion(op, current, now)
	case op.Metadata != nil && !bytes.Equal(op.Metadata, current.Metadata):
		d.Action, d.Outcome, d.After = ActionAnnotate, Updated, annotated(op, *current)
	default:
		d.After = *current
	}
	return d, nil
}

// Events returns the events of the operation: none if it changes nothing, or only metadata.
func (d *Decision) Events(op Op) []Event {
	if op.Events == nil || d.Action == ActionNone || d.Action == ActionAnnotate {
		return nil
	}
	change := Change{Outcome: d.Outcome, Before: d.Before}
	if d.Action != ActionPurge {
		after := d.After
		after.Created, after.Updated, after.UID = time.Time{}, time.Time{}, ""
		change.After = &after
	}
	return op.Events(change)
}

// nextVersion returns the version with which a Put or a Delete supersedes current. For a new
// record, the caller passes a tombstone of version 0 as current.
func nextVersion(op Op, current *Record, now time.Time) Record {
	next := Record{
		Key: current.Key, UID: current.UID, Created: current.Created, Updated: later(now, current.Updated),
		Version: current.Version + 1, Method: op.Method, Deleted: op.Kind == Delete,
	}
	if next.Deleted {
		return next
	}
	if current.Deleted {
		next.UID, next.Created = "", next.Updated
	}
	next.Body = op.Body
	next.Claims = append(next.Claims, op.Claims...)
	for _, claim := range current.Claims {
		if op.Claims == nil && !claim.Expired(now) {
			next.Claims = append(next.Claims, claim)
		}
	}
	next.Metadata, next.MetadataVersion = current.Metadata, current.MetadataVersion
	return annotated(op, next)
}

// annotated returns a record with the metadata of the operation.
func annotated(op Op, r Record) Record {
	r.Revision = ""
	if op.Metadata != nil {
		r.Metadata, r.MetadataVersion = op.Metadata, r.Version
	}
	if len(r.Metadata) == 0 {
		r.Metadata, r.MetadataVersion = nil, 0
	}
	return r
}

// later returns now if it is after before, and otherwise one millisecond after before. Thus the
// versions of a record are in the order of time even if the clock steps back.
func later(now, before time.Time) time.Time {
	if now.After(before) {
		return now
	}
	return before.Add(time.Millisecond)
}
