// Package store is what the facades need from a site's storage: typed records
// with a version, a body kept byte for byte, and exclusive claims. It knows
// neither HTTP nor FHIR nor any engine.
package store

import (
	"context"
)

// Store holds the records of one site. It is bound to that site: nothing can
// name another site's record. All methods are safe for concurrent use and
// return the typed errors of this package.
type Store interface {
	// Get returns the newest version of a record, fresh on every replica.
	// Errors: ErrNotFound, *DeletedError, ErrUnavailable.
	Get(ctx context.Context, key Key) (Record, error)

	// GetVersion returns one version of a record, a tombstone included.
	// Errors: ErrNotFound (also for a version no longer kept), ErrUnavailable.
	GetVersion(ctx context.Context, key Key, version int64) (Record, error)

	// History returns versions, newest first, also of deleted records. Those of
	// one record are as fresh as Get, those of several as Search. The total is
	// always exact. Of several records it tells nothing that a write which is still
	// open may come before: who asks again for what is later than all told misses none.
	// Where replicas learn of each other's writes by and by, that is so of the writes
	// of one. Errors: ErrNotFound for one record, ErrNotReady for several,
	// ErrBadPosition, ErrUnavailable.
	History(ctx context.Context, query HistoryQuery) (Page, error)

	// Search returns the live records that match. A write that this replica
	// acknowledged is in the next search here; in those of other replicas within
	// a second. By time (Query.ByTime) it finds nothing that an open write may come
	// before, as History. Errors: ErrNotReady, ErrBadPosition,
	// *AmbiguousError, ErrQueryTimeout, ErrUnavailable.
	Search(ctx context.Context, query Query) (Page, error)

	// Write applies the operations: all of them or none. Errors: ErrNotFound,
	// *PreconditionError, *ClaimError, *LimitError, *MissingReferenceError,
	// *ReferencedError, ErrUnavailable, and ErrNotAtomic from an engine that cannot
	// write several records as one, nor one in view of others (Op.Requires and
	// Op.Unreferenced).
	// After ErrUnavailable the write may still have happened.
	Write(ctx context.Context, ops []Op) ([]Result, error)

	// Atomic reports whether Write takes several operations at once, and operations
	// that depend on other records.
	Atomic() bool

	// Stats tells how much the site stores and may store.
	Stats() Stats
}

// Stats is how full a site's storage is.
type Stats struct {
	// Records counts the stored records, tombstones included.
	Records, MaxRecords int64
	// Bytes is the size of records and their history, as stored.
	Bytes, MaxBytes int64
}
