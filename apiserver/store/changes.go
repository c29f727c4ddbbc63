package store

import (
	"context"
	"errors"
)

// ErrChangesLost means that an engine does not know all changes since a mark of its ChangeLog, or
// that the engine has no log.
var ErrChangesLost = errors.New("the log of changes does not have all changes since the mark")

// ChangeLog finds the records that have changed since an earlier time. So two storages that were
// compared once can be compared again without reading all records. ChangeLog also has changes that
// make no version: purges, and changes of claims and metadata. Engines implement ChangeLog in
// addition to Archive. All replicas understand each other's marks. In the Cluster engine, a replica
// knows only the changes since it started.
type ChangeLog interface {
	// LogChanges begins the log if the engine does not always have one. It does nothing if there is a log
	// already. While there is one, writes take longer. Errors: ErrNotReady, ErrUnavailable.
	LogChanges(ctx context.Context) error
	// Mark returns a mark for ChangedSince, an opaque text. Errors: ErrChangesLost if there is no log,
	// ErrNotReady, ErrUnavailable.
	Mark(ctx context.Context) (string, error)
	// ChangedSince returns the records that have changed since a mark, each once, in the order of a dump.
	// It may also return unchanged records. The ids may differ from the stored ids in case. A record that
	// ChangedSince does not return is the same in each Dump between Mark and the call of ChangedSince.
	// Errors: ErrChangesLost, ErrNotReady, ErrUnavailable.
	ChangedSince(ctx context.Context, mark string) ([]Key, error)
	// DropChanges ends the log and deletes it. It does nothing if there is none, or if the engine always
	// has one. Errors: ErrUnavailable.
	DropChanges(ctx context.Context) error
	// Count returns the exact numbers of records that a Dump has. The time that it takes grows with
	// these numbers. Errors: ErrNotReady, ErrQueryTimeout, ErrUnavailable.
	Count(ctx context.Context) (Counts, error)
}

// Counts are the numbers of live records and of tombstones of a site, without jobs.
type Counts struct{ Records, Tombstones int64 }
