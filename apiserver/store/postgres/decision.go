package postgres

import (
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// state is the newest version of a record in the database.
type state struct {
	// id is the id in lower case. key has the spelling in which it was first stored.
	id        string
	key       store.Key
	rid, self int64
	version   int64
	updated   time.Time
	sum       int64
	method    store.Method
	deleted   bool
	// isPacked reports whether vals and ix_text have the texts of the record. If an earlier release
	// wrote the record, they have none. It is always true if pageColumns were read.
	isPacked bool
	claims   []store.Claim
	body     store.Body
	metadata metadata
}

// record converts a state to a store.Record.
func (s *Store) record(at *state) store.Record { return s.recordOf(at, &texts{}) }

// recordOf is like record, but allocates the UID and the revision in kept.
func (s *Store) recordOf(at *state, kept *texts) store.Record {
	return store.Record{
		Key: at.key, UID: s.uid(at.rid, kept), Version: at.version, Revision: revision(at.rid, at.version, at.metadata.changes, kept),
		Created: indexrow.CreatedAt(at.rid), Updated: at.updated, Method: at.method, Deleted: at.deleted,
		Body: at.body, Claims: at.claims, Metadata: at.metadata.text, MetadataVersion: at.metadata.of(),
	}
}

// decision is the effect of an operation on the newest version of its record.
type decision struct {
	store.Decision
	// next is the newest version after the operation, if the Action makes or changes a version.
	next state
	// values is Op.Values, which may be nil.
	values func() []store.IndexValue
}

// decide returns the effect of an operation on the current state of its record, which is nil if
// there is none. Errors: those of store.Precondition.Check.
func (s *Store) decide(op store.Op, current *state, now time.Time) (decision, error) {
	var record *store.Record
	if current != nil {
		r := s.record(current)
		record = &r
	}
	d, err := store.Decide(op, record, now)
	if err != nil {
		return decision{}, err
	}
	p := decision{Decision: d, values: op.Values}
	if d.Action != store.ActionNone && d.Action != store.ActionPurge {
		p.next = s.nextState(&d, current)
	}
	return p, nil
}

// nextState returns the newest version after a write that makes or changes a version.
func (s *Store) nextState(d *store.Decision, current *state) state {
	after := &d.After
	next := state{id: foldID(after.Key.ID), key: after.Key}
	if current != nil {
		next = *current
	} else {
		next.self = s.hash.Self(after.Key.Type, after.Key.ID)
	}
	if d.Outcome == store.Created {
		next.rid = s.rids.Next(after.Created)
	}
	switch {
	case after.Deleted:
		next.metadata.changes = 0
	case d.Action == store.ActionAnnotate:
		next.metadata.changes++
	}
	next.version, next.updated, next.method, next.deleted = after.Version, after.Updated, after.Method, after.Deleted
	next.body, next.claims = after.Body, after.Claims
	next.metadata.version, next.metadata.text = after.MetadataVersion, after.Metadata
	return next
}
