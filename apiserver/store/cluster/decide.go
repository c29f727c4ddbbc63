package cluster

import (
	"bytes"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// action is what has to happen to a Record object.
type action int

const (
	doNothing  action = iota
	doCreate          // there is no object: create it
	doUpdate          // supersede the object's version
	doAnnotate        // change the object's metadata, at its version
	doPurge           // remove the object and its history
)

// plan is what an operation comes to, given the newest version of its record.
type plan struct {
	action  action
	outcome store.Outcome
	// next is the Record after the write, for doCreate, doUpdate and doAnnotate.
	next recordsv1.RecordSpec
}

// decide works out what an operation comes to. It returns a precondition's error
// as store.Precondition.Check does.
func decide(op store.Op, current *recordsv1.Record, limits Limits, now time.Time, newID func() string) (plan, error) {
	var record *store.Record
	if current != nil {
		r := toRecord(current)
		record = &r
	}
	if err := op.If.Check(op.Key, record); err != nil {
		return plan{}, err
	}
	live := record != nil && !record.Deleted
	switch op.Kind {
	case store.Delete:
		if !live {
			return plan{}, nil
		}
		return plan{action: doUpdate, outcome: store.Removed, next: successor(op, current, limits, now, newID)}, nil
	case store.Purge:
		if record == nil {
			return plan{}, nil
		}
		return plan{action: doPurge, outcome: store.Removed}, nil
	default:
		return decidePut(op, current, record, limits, now, newID), nil
	}
}

func decidePut(op store.Op, current *recordsv1.Record, record *store.Record, limits Limits, now time.Time, newID func() string) plan {
	switch {
	case record == nil:
		return plan{action: doCreate, outcome: store.Created, next: first(op, now, newID)}
	case record.Deleted:
		return plan{action: doUpdate, outcome: store.Created, next: successor(op, current, limits, now, newID)}
	case record.Body.SameValue(op.Body) && (op.Claims == nil || slices.EqualFunc(record.Claims, op.Claims, equalClaims)):
		if op.Metadata == nil || bytes.Equal(op.Metadata, record.Metadata) {
			return plan{}
		}
		return plan{action: doAnnotate, outcome: store.Updated, next: annotated(op, current, newID)}
	default:
		return plan{action: doUpdate, outcome: store.Updated, next: successor(op, current, limits, now, newID)}
	}
}

func equalClaims(a, b store.Claim) bool {
	return a.SameInterval(b) && a.Expires.Equal(b.Expires)
}

// first is the first version of a record that never was.
func first(op store.Op, now time.Time, newID func() string) recordsv1.RecordSpec {
	uid := newID()
	at := metav1.NewMicroTime(now)
	spec := recordsv1.RecordSpec{
		Type: op.Key.Type, ID: op.Key.ID,
		UID: uid, Lineage: uid, Version: 1, Write: newID(),
		Method: string(op.Method), Created: at, Updated: at,
		Body: string(op.Body.JSON), IDOffset: op.Body.IDOffset, MetaOffset: op.Body.MetaOffset,
		Claims: heldClaims(op.Claims, nil, newID),
	}
	setMetadata(&spec, op)
	return spec
}

// annotated is the current version with other metadata.
func annotated(op store.Op, current *recordsv1.Record, newID func() string) recordsv1.RecordSpec {
	next := current.Spec
	next.Write = newID()
	setMetadata(&next, op)
	return next
}

// setMetadata gives a version the metadata that an operation wants it to have.
func setMetadata(spec *recordsv1.RecordSpec, op store.Op) {
	switch {
	case spec.Deleted || op.Metadata != nil && len(op.Metadata) == 0:
		spec.Metadata, spec.MetadataVersion = "", 0
	case op.Metadata != nil:
		spec.Metadata, spec.MetadataVersion = string(op.Metadata), spec.Version
	}
}

// successor is the version that follows the current one.
func successor(op store.Op, current *recordsv1.Record, limits Limits, now time.Time, newID func() string) recordsv1.RecordSpec {
	past := supersede(&current.Spec)
	next := current.Spec
	next.Version++
	next.Write = newID()
	next.Method = string(op.Method)
	next.Updated = metav1.NewMicroTime(later(now, current.Spec.Updated.Time))
	next.Deleted = op.Kind == store.Delete
	next.Body, next.IDOffset, next.MetaOffset = string(op.Body.JSON), op.Body.IDOffset, op.Body.MetaOffset
	sizes := append(slices.Clone(current.Spec.History), supersededSize(&past))
	next.History = limits.retain(sizes)
	next.HistoryDropped = len(sizes) - len(next.History)
	next.HistoryUpdated, next.HistoryDeletions = retold(&current.Spec, len(next.History))
	if current.Spec.Deleted {
		next.UID, next.Created = newID(), next.Updated
	}
	if op.Kind != store.Put || op.Claims != nil {
		next.Claims = heldClaims(op.Claims, current.Spec.Claims, newID)
	} else {
		next.Claims = unexpired(current.Spec.Claims, now)
	}
	setMetadata(&next, op)
	return next
}

// retold is when each of the kept superseded versions was written, the newest
// version's own at the end, and which of them are tombstones.
func retold(spec *recordsv1.RecordSpec, kept int) (updated, deletions []int64) {
	updated = append(slices.Clone(spec.HistoryUpdated), spec.Updated.UnixMilli())
	deletions = slices.Clone(spec.HistoryDeletions)
	if spec.Deleted {
		deletions = append(deletions, spec.Version)
	}
	oldest := spec.Version + 1 - int64(kept)
	deletions = slices.DeleteFunc(deletions, func(version int64) bool { return version < oldest })
	return updated[max(0, len(updated)-kept):], deletions
}

// later is now, or a millisecond after the time before it: versions of a record
// are ordered by time even when the clock steps back.
func later(now, before time.Time) time.Time {
	if now.After(before) {
		return now
	}
	return before.Add(time.Millisecond)
}

// unexpired leaves out the claims that have ended by themselves.
func unexpired(held []recordsv1.HeldClaim, now time.Time) []recordsv1.HeldClaim {
	return slices.DeleteFunc(slices.Clone(held), func(h recordsv1.HeldClaim) bool { return expired(h.Expires, now) })
}

// heldClaims gives each wanted claim the nonce under which it is held already, as it is
// wanted, or a new one: two writers that want it to end at different times must not
// change each other's entry.
func heldClaims(wanted []store.Claim, held []recordsv1.HeldClaim, newID func() string) []recordsv1.HeldClaim {
	if len(wanted) == 0 {
		return nil
	}
	claims := make([]recordsv1.HeldClaim, len(wanted))
	before := toClaims(held)
	for i, w := range wanted {
		claims[i] = recordsv1.HeldClaim{Line: w.Line, From: toMicro(w.From), Until: toMicro(w.Until), Expires: toMicro(w.Expires)}
		if at := slices.IndexFunc(before, func(b store.Claim) bool { return equalClaims(b, w) }); at >= 0 {
			claims[i].Nonce = held[at].Nonce
		} else {
			claims[i].Nonce = newID()
		}
	}
	return claims
}
