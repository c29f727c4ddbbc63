package store

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrNotFound means that the record or the version never existed, was purged, was dropped by the
	// engine, or is hidden from the caller.
	ErrNotFound = errors.New("record not found")
	// ErrUnavailable means that the database or the Kubernetes API failed or did not answer in time.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrMoving means that writes are paused, or were ended, by the move of the site to another storage.
	ErrMoving = errors.New("the site is being moved to another storage")
	// ErrNotReady means that the search index of the site is still being built.
	ErrNotReady = errors.New("the search index of the site is being built; retry later")
	// ErrNotAtomic means that the engine cannot write several records atomically (Store.Atomic). The
	// Write has several operations, or an operation with Requires or Unreferenced.
	ErrNotAtomic = errors.New("this storage cannot write several records atomically")
	// ErrQueryTimeout means that a query exceeded the time, the memory or the number of arguments that
	// the engine allows.
	ErrQueryTimeout = errors.New("the query takes too long, or has too many values")
	// ErrBadPosition means that a Position does not belong to the query.
	ErrBadPosition = errors.New("the position does not belong to this query")
)

// DeletedError means that the newest version of the record is a tombstone.
type DeletedError struct {
	Key Key
	// Version and Updated are those of the tombstone.
	Version int64
	Updated time.Time
}

func (e *DeletedError) Error() string {
	return fmt.Sprintf("%s/%s was deleted in version %d", e.Key.Type, e.Key.ID, e.Version)
}

// IsAbsent reports whether err is ErrNotFound or a *DeletedError.
func IsAbsent(err error) bool {
	var deleted *DeletedError
	return errors.Is(err, ErrNotFound) || errors.As(err, &deleted)
}

// PreconditionError means that the precondition of an operation does not hold.
type PreconditionError struct {
	Key Key
	// Current is the newest version of the record. It is nil if the record is not live.
	Current *Record
}

func (e *PreconditionError) Error() string {
	if e.Current == nil {
		return fmt.Sprintf("precondition on %s/%s failed: the record does not exist", e.Key.Type, e.Key.ID)
	}
	return fmt.Sprintf("precondition on %s/%s failed: the record is at version %d; read it before you retry", e.Key.Type, e.Key.ID, e.Current.Version)
}

// IsConflict reports whether err is a *PreconditionError.
func IsConflict(err error) bool {
	var conflict *PreconditionError
	return errors.As(err, &conflict)
}

// RefusedError means that Precondition.Approve refused an operation.
type RefusedError struct{ Reason error }

func (e *RefusedError) Error() string { return e.Reason.Error() }

// Unwrap returns Reason.
func (e *RefusedError) Unwrap() error { return e.Reason }

// IDTakenError means that a hidden record already has the id of the record to create.
type IDTakenError struct{ Key Key }

func (e *IDTakenError) Error() string {
	return fmt.Sprintf("the id of %s/%s is taken; choose another id", e.Key.Type, e.Key.ID)
}

// ClaimError means that another record holds a claim that overlaps a claim of the operation.
type ClaimError struct {
	// Claim is the claim that the other record holds. It is on the same line as the operation's claim.
	Claim Claim
	// Holder is the record that holds Claim. It is zero if that record is hidden from the caller.
	Holder Key
}

func (e *ClaimError) Error() string {
	if e.Holder == (Key{}) {
		return e.Claim.Kind() + " is claimed by another record"
	}
	return fmt.Sprintf("%s is claimed by %s/%s", e.Claim.Kind(), e.Holder.Type, e.Holder.ID)
}

// MissingReferenceError means that records in Op.Requires are not live, or are in Op.Unseen.
type MissingReferenceError struct {
	// Key is the record of the operation. Missing are the records that are not live, or are in
	// Op.Unseen.
	Key     Key
	Missing []Key
}

func (e *MissingReferenceError) Error() string {
	return fmt.Sprintf("%s/%s refers to %s, which does not exist", e.Key.Type, e.Key.ID, list(e.Missing))
}

// ReferencedError means that live records refer to the record to remove.
type ReferencedError struct {
	Key Key
	// By holds the records that refer to Key, without those that Op.Referrers excludes, sorted by
	// type and id, at most 10 of each type.
	By []Key
	// More reports whether By leaves out records that Op.Referrers allows. If Op.Referrers allows none
	// of the referring records, By is empty and More is true.
	More bool
}

func (e *ReferencedError) Error() string {
	by := list(e.By)
	switch {
	case len(e.By) == 0:
		by = "other records"
	case e.More:
		by += " and other records"
	}
	return fmt.Sprintf("%s/%s is referred to by %s", e.Key.Type, e.Key.ID, by)
}

// list returns the first 10 keys as text, and how many more there are.
func list(keys []Key) string {
	const maxNamed = 10
	var names []string
	for _, key := range keys[:min(maxNamed, len(keys))] {
		names = append(names, key.Type+"/"+key.ID)
	}
	if len(keys) > maxNamed {
		names = append(names, fmt.Sprintf("%d more records", len(keys)-maxNamed))
	}
	return strings.Join(names, ", ")
}

// AmbiguousError means that references to records of several types match a RefersToID.
type AmbiguousError struct {
	Param, ID string
	Types     []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s matches references to records of several types with the id %q: %s", e.Param, e.ID, strings.Join(e.Types, ", "))
}

// TooManyConditionsError means that a query has more conditions than the engine allows. Engines
// count conditions in their own way: several values of one parameter may be one condition.
type TooManyConditionsError struct{ Count, Max int }

func (e *TooManyConditionsError) Error() string {
	return fmt.Sprintf("the query has %d conditions; the maximum is %d", e.Count, e.Max)
}

// LimitScope is what a limit applies to.
type LimitScope string

// The scopes of a limit.
const (
	LimitRecord  LimitScope = "record"
	LimitSite    LimitScope = "site"
	LimitCluster LimitScope = "cluster"
)

// LimitError means that a write would exceed a storage limit.
type LimitError struct {
	Scope LimitScope
	// What is the unit of Max: "records", "bytes", "bytes of events", or one of the constants
	// below. Max is the limit.
	What string
	Max  int64
}

// The units of limits on the backlog of webhook deliveries, which shrinks as deliveries end.
const (
	// PendingEventBytes counts the bytes of those events of one record that have no deliveries yet.
	PendingEventBytes = "bytes of events waiting for delivery"
	// PendingDeliveries counts the deliveries whose next attempt is due or scheduled.
	PendingDeliveries = "pending webhook deliveries"
	// KeptDeliveries counts the pending deliveries, and the dead letters that are still kept.
	KeptDeliveries = "pending or dead-lettered webhook deliveries"
)

// IsBacklog reports whether the limit is on the backlog of webhook deliveries. The backlog shrinks,
// so the same write may succeed later, and facades answer 429.
func (e *LimitError) IsBacklog() bool {
	return e.What == PendingEventBytes || e.What == PendingDeliveries || e.What == KeptDeliveries
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the write exceeds the storage limit of the %s: at most %d %s", e.Scope, e.Max, e.What)
}
