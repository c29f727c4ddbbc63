package store

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrNotFound says that a record, or the version asked for, never was or is purged.
	ErrNotFound = errors.New("record not found")
	// ErrUnavailable says that the backend is away or did not answer in time.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrNotReady says that the search index of the site is still being built.
	ErrNotReady = errors.New("search index is being built")
	// ErrNotAtomic says that the engine cannot write several records as one.
	ErrNotAtomic = errors.New("this storage cannot write several records atomically")
	// ErrQueryTimeout says that a query took longer than the engine lets it.
	ErrQueryTimeout = errors.New("the query takes too long")
	// ErrBadPosition says that a Position is not one of this query's.
	ErrBadPosition = errors.New("position does not belong to this query")
)

// DeletedError says that the record was deleted.
type DeletedError struct {
	Key     Key
	Version int64
	Updated time.Time
}

func (e *DeletedError) Error() string {
	return fmt.Sprintf("%s/%s was deleted in version %d", e.Key.Type, e.Key.ID, e.Version)
}

// PreconditionError says that an operation's precondition does not hold.
type PreconditionError struct {
	Key Key
	// Current is the newest live version, nil when there is none.
	Current *Record
}

func (e *PreconditionError) Error() string {
	if e.Current == nil {
		return fmt.Sprintf("precondition on %s/%s failed: there is no such record", e.Key.Type, e.Key.ID)
	}
	return fmt.Sprintf("precondition on %s/%s failed: it is at version %d", e.Key.Type, e.Key.ID, e.Current.Version)
}

// ClaimError says that another record holds an overlapping claim.
type ClaimError struct {
	Claim  Claim
	Holder Key
}

func (e *ClaimError) Error() string {
	return fmt.Sprintf("%s is claimed by %s/%s", e.Claim.Line, e.Holder.Type, e.Holder.ID)
}

// MissingReferenceError says that records that an operation requires are not there.
type MissingReferenceError struct {
	Key     Key
	Missing []Key
}

func (e *MissingReferenceError) Error() string {
	return fmt.Sprintf("%s/%s refers to %s, which is not there", e.Key.Type, e.Key.ID, list(e.Missing))
}

// ReferencedError says that records refer to the one that was to be removed.
type ReferencedError struct {
	Key Key
	// By are those that do, in the order of type and id, ten of a type at most; More tells
	// that there are others.
	By   []Key
	More bool
}

func (e *ReferencedError) Error() string {
	by := list(e.By)
	if e.More {
		by += " and others"
	}
	return fmt.Sprintf("%s/%s is referred to by %s", e.Key.Type, e.Key.ID, by)
}

// list names the first ones of some keys.
func list(keys []Key) string {
	const most = 10
	var names []string
	for _, key := range keys[:min(most, len(keys))] {
		names = append(names, key.Type+"/"+key.ID)
	}
	if len(keys) > most {
		names = append(names, fmt.Sprintf("%d others", len(keys)-most))
	}
	return strings.Join(names, ", ")
}

// AmbiguousError says that an id alone does not tell which record is referred to:
// references to records of several types match.
type AmbiguousError struct {
	Param, ID string
	Types     []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s matches references to %s, all with the id %q", e.Param, strings.Join(e.Types, " and "), e.ID)
}

// LimitScope says whose limit was met.
type LimitScope string

// The scopes of a limit.
const (
	LimitRecord  LimitScope = "record"
	LimitSite    LimitScope = "site"
	LimitCluster LimitScope = "cluster"
)

// LimitError says that a write would exceed a storage limit.
type LimitError struct {
	Scope LimitScope
	// What is counted: "records" or "bytes".
	What string
	Max  int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("storage limit of the %s reached: at most %d %s", e.Scope, e.Max, e.What)
}
