package postgres

import (
	"bytes"
	"slices"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// state is the newest version of a record as it is stored.
type state struct {
	// id is the id in lower case; key has the spelling first stored.
	id        string
	key       store.Key
	rid, self int64
	version   int64
	updated   time.Time
	sum       int64
	method    store.Method
	deleted   bool
	claims    []store.Claim
	body      store.Body
	metadata  metadata
}

// record is the state as the contract has it.
func (s *Site) record(at *state) store.Record { return s.recordOf(at, &texts{}) }

// recordOf is record for one of several whose texts are kept together.
func (s *Site) recordOf(at *state, kept *texts) store.Record {
	return store.Record{
		Key: at.key, UID: s.uid(at.rid, kept), Version: at.version, Revision: revision(at.rid, at.version, at.metadata.changes, kept),
		Created: createdAt(at.rid), Updated: at.updated, Method: at.method, Deleted: at.deleted,
		Body: at.body, Claims: at.claims, Metadata: at.metadata.text, MetadataVersion: at.metadata.of(),
	}
}

// action is what has to happen to the row of a record.
type action int

const (
	doNothing  action = iota
	doCreate          // there is no row: insert it
	doUpdate          // supersede the row's version
	doAnnotate        // change the row's metadata, at its version
	doPurge           // remove the row and the record's history
)

// plan is what an operation comes to, given the newest version of its record.
type plan struct {
	action  action
	outcome store.Outcome
	// next is the newest version afterwards, for doCreate, doUpdate and doAnnotate.
	next state
}

// decide works out what an operation comes to. It returns a precondition's error as
// store.Precondition.Check does.
func (s *Site) decide(op store.Op, current *state, now time.Time) (plan, error) {
	var record *store.Record
	if current != nil {
		r := s.record(current)
		record = &r
	}
	if err := op.If.Check(op.Key, record); err != nil {
		return plan{}, err
	}
	live := record != nil && !record.Deleted
	switch {
	case op.Kind == store.Delete && !live, op.Kind == store.Purge && record == nil:
		return plan{}, nil
	case op.Kind == store.Delete:
		return plan{action: doUpdate, outcome: store.Removed, next: s.successor(op, current, now)}, nil
	case op.Kind == store.Purge:
		return plan{action: doPurge, outcome: store.Removed}, nil
	case record == nil:
		return plan{action: doCreate, outcome: store.Created, next: s.first(op, now)}, nil
	case record.Deleted:
		return plan{action: doUpdate, outcome: store.Created, next: s.successor(op, current, now)}, nil
	case record.Body.SameValue(op.Body) && (op.Claims == nil || slices.EqualFunc(record.Claims, op.Claims, equalClaims)):
		if op.Metadata == nil || bytes.Equal(op.Metadata, record.Metadata) {
			return plan{}, nil
		}
		return plan{action: doAnnotate, outcome: store.Updated, next: annotated(op, current)}, nil
	default:
		return plan{action: doUpdate, outcome: store.Updated, next: s.successor(op, current, now)}, nil
	}
}

func equalClaims(a, b store.Claim) bool {
	return a.SameInterval(b) && a.Expires.Equal(b.Expires)
}

// first is the first version of a record that never was.
func (s *Site) first(op store.Op, now time.Time) state {
	first := state{
		id: foldID(op.Key.ID), key: op.Key, rid: s.rids.next(now), self: s.hash.self(op.Key.Type, op.Key.ID),
		version: 1, updated: now, method: op.Method, body: op.Body, claims: someClaims(op.Claims),
	}
	first.setMetadata(op)
	return first
}

// successor is the version that follows the current one.
func (s *Site) successor(op store.Op, current *state, now time.Time) state {
	next := *current
	next.version++
	next.updated = later(now, current.updated)
	next.method = op.Method
	next.deleted = op.Kind == store.Delete
	next.body = op.Body
	if next.deleted {
		next.body = store.Body{}
	}
	if current.deleted {
		next.rid = s.rids.next(next.updated)
	}
	if op.Kind != store.Put || op.Claims != nil {
		next.claims = someClaims(op.Claims)
	} else {
		next.claims = slices.DeleteFunc(slices.Clone(current.claims), func(c store.Claim) bool { return expired(c, now) })
	}
	if current.deleted {
		next.metadata = metadata{}
	}
	next.setMetadata(op)
	return next
}

func someClaims(claims []store.Claim) []store.Claim {
	if len(claims) == 0 {
		return nil
	}
	return slices.Clone(claims)
}

func expired(c store.Claim, now time.Time) bool { return !c.Expires.IsZero() && !now.Before(c.Expires) }

// later is now, or a millisecond after the time before it: versions of a record are
// ordered by time even when the clock steps back.
func later(now, before time.Time) time.Time {
	if now.After(before) {
		return now
	}
	return before.Add(time.Millisecond)
}
