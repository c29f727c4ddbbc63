// Package store is the contract between the facades and the storage engines. A Store holds the
// versioned records of one site and their exclusive claims. It keeps the bodies of records byte for
// byte. The package knows neither HTTP nor FHIR nor an engine. Package storetest tests engines
// against the contract.
package store

import (
	"context"
	"time"
)

// Store holds the records of one site. It cannot read or write the records of another site. All
// methods are safe for concurrent use. In addition to the errors listed, a method with a context
// may return the error of that context.
type Store interface {
	// Get returns the newest version of a record. It sees all writes that any replica of the API
	// server has acknowledged. Errors: ErrNotFound, *DeletedError, ErrUnavailable.
	Get(ctx context.Context, key Key) (Record, error)

	// GetVersion returns one version of a record, which may be a tombstone. Engines may drop old
	// superseded versions. Errors: ErrNotFound, ErrUnavailable.
	GetVersion(ctx context.Context, key Key, version int64) (Record, error)

	// History returns versions, newest first, also those of deleted records. The total is always
	// exact. The history of one record is as fresh as Get.
	//
	// The history of several records is as fresh as Search. It has only versions from before the
	// watermark. The watermark is the start of the oldest write that is in progress when the first
	// page is read. If no write is in progress, it is the time of that read. A client that polls with
	// Since set to the newest time it received therefore misses no version. In an engine whose
	// replicas see each other's writes with a delay, this holds only for the writes of the replica
	// that the client polls.
	//
	// Errors: ErrNotFound (only for the history of one record; a deleted record has a history),
	// ErrNotReady (only for the history of several records, or with Access), ErrBadPosition,
	// ErrQueryTimeout, ErrUnavailable.
	History(ctx context.Context, query HistoryQuery) (Page, error)

	// Search returns the live records that match. With Query.MaxLag, it may miss writes that were
	// acknowledged up to MaxLag before the call. Without MaxLag, it sees all writes that this replica
	// has acknowledged. It sees the writes of other replicas after at most a second while the storage
	// is available, or at once with Query.Consistent. If Query.ByTime is true, it returns only records
	// updated before the watermark. Errors: ErrNotReady, ErrBadPosition, *AmbiguousError,
	// *TooManyConditionsError, ErrQueryTimeout, ErrUnavailable.
	Search(ctx context.Context, query Query) (Page, error)

	// Watermark returns the time up to which all histories are complete. A History or Search that
	// begins afterwards sees every version from before that time, and no further write has an earlier
	// time. The watermark is later than the writes that this replica has acknowledged, unless a write
	// that began before them is still in progress. In an engine whose replicas see each other's writes
	// with a delay, it is valid only for reads and writes by this replica (see History). Errors:
	// ErrUnavailable.
	Watermark(ctx context.Context) (time.Time, error)

	// Write applies all of the operations or none, and returns one result for each of them in the
	// same order. An engine for which Atomic is false returns ErrNotAtomic for several operations,
	// for Op.Requires and for Op.Unreferenced. If Write returns ErrUnavailable, the write may have
	// happened, or may still happen. Errors: ErrNotFound, *DeletedError, *RefusedError,
	// *PreconditionError, *ClaimError, *LimitError, *MissingReferenceError, *ReferencedError,
	// ErrNotAtomic, ErrMoving, ErrNotReady, ErrUnavailable.
	Write(ctx context.Context, ops []Op) ([]Result, error)

	// Atomic reports whether Write accepts several operations, Op.Requires and Op.Unreferenced.
	Atomic() bool

	// Stats returns how much the site stores, and the limits of the site. The result can be older than
	// the call (Stats.Counted).
	Stats() Stats
}

// Restricted is a Store that shows one caller only the records that this caller may see. Facades
// take a Restricted, so that no facade can reach an engine without restrictions. Its Write also
// returns *IDTakenError. Its Stats counts all records.
type Restricted interface {
	Store
	// Digest returns a text that identifies what the caller may see of the record types. A Position
	// must be used only with the digest under which it was made: with another digest, the Position
	// could reveal hidden records. Errors: those of the lookup of the caller's rights.
	Digest(recordTypes []string) (string, error)
	// Hidden returns those of the keys whose records exist but are hidden from the caller. Errors:
	// those of the lookup of the caller's rights, ErrUnavailable.
	Hidden(ctx context.Context, keys []Key) ([]Key, error)
	// CheckWrite returns the error with which Write would refuse one operation because of the caller's
	// rights, without writing. current is the record as Get returned it to the caller, or nil if Get
	// found none. The preconditions of the operation are not checked. Errors: those of Write.
	CheckWrite(op Op, current *Record) error
}

// Stats is the storage that a site uses, and the limits of the site.
type Stats struct {
	// Records is the number of live records. Tombstones do not count. In the Cluster engine, jobs and
	// posted events do not count either. MaxRecords is the maximum of Records; 0 means no limit.
	Records, MaxRecords int64
	// Bytes is the stored size in bytes: in Postgres that of all bodies, in the Cluster engine that of
	// all records except jobs, with tombstones, histories and events. MaxBytes is the maximum of Bytes;
	// 0 means no limit.
	Bytes, MaxBytes int64
	// Counted is the time at which the storage was counted. It is zero if there is no count yet. In the
	// Cluster engine, it is zero until the index is filled, and the time of the call afterwards.
	Counted time.Time
}
