package store

// OpKind is the kind of an operation. The zero value is not valid.
type OpKind int

const (
	// Put creates or updates a record. It changes nothing, not even bytes, if claims, metadata and
	// the value of the body (Body.SameValue) are the same.
	Put OpKind = iota + 1
	// Delete replaces the newest version by a tombstone and keeps the history. It changes nothing
	// if there is no live record.
	Delete
	// Purge removes the record, its tombstone and its history, if they exist.
	Purge
)

// Op is one operation of Store.Write: a change to the record with the key Key.
type Op struct {
	Kind OpKind
	Key  Key
	// Method becomes Record.Method of the new version.
	Method Method
	// Body is the new body of a Put. It is empty for a Delete and a Purge.
	Body Body
	// Values, if not nil, returns the index values of Body. They must be those that the site's Extractor
	// returns for it. A caller that has parsed the body already sets Values. If it is nil, the engine
	// extracts the values itself. An engine calls Values at most once in each attempt to write.
	Values func() []IndexValue
	// Claims, if not nil, are all claims that the record holds after a Put. The record releases
	// other claims that it held before. If Claims is nil, the record keeps its claims. Delete and Purge
	// release all claims.
	Claims []Claim
	// Metadata, if not nil, is the metadata of the record after a Put. A Put with empty Metadata
	// removes the metadata. A Put with nil Metadata keeps it. A Put that changes nothing but metadata
	// makes a new revision, but no version. Delete and Purge remove the metadata.
	Metadata []byte
	// If is the precondition of the operation. The zero value always holds.
	If Precondition
	// Requires are records that must be live when the Write is done. They may be stored already, or
	// put by the same Write. Only a Put may have Requires.
	Requires []Key
	// Unseen are those of Requires that count as not live, because the caller must not learn whether
	// they are.
	Unseen []Key
	// Unreferenced makes a Delete or a Purge fail if a live record has a Reference or a Mention of the
	// removed record when the Write is done. It has no effect if there is nothing to remove.
	Unreferenced bool
	// Erase makes a Purge also remove the events about the record and their deliveries, pending
	// deliveries included. The events about the record are those whose Subject is its type and id,
	// compared without case. They are removed even if the record does not exist, so that an interrupted
	// Purge can be repeated. In the Cluster engine, a Purge whose precondition held at first may fail
	// after it has removed events.
	Erase bool
	// Referrers, if not nil, returns the condition of those records of a type that a
	// *ReferencedError may name and count. The condition consists of All, Any, Not, HasLabel and
	// LinksTo. If Referrers is nil, the error may name and count all records.
	Referrers func(recordType string) (Condition, error)
	// Bases are the base URLs of this site, as in Query. Only Unreferenced uses them.
	Bases []string
	// Events, if not nil, returns the events of the operation. The engine calls it with the change
	// that it is about to write, possibly several times. The engine holds locks during the call, so
	// Events must not call the store. Events is not called for an operation that changes nothing, or
	// only metadata.
	Events func(Change) []Event
}

// Precondition is what must hold for an operation to happen. The zero value always holds. A deleted
// record counts as absent.
type Precondition struct {
	// Absent requires that there is no live record.
	Absent bool
	// Present requires that there is a live record.
	Present bool
	// Version, if not 0, is the version that the live record must have. With Absent, it is the
	// version that the tombstone must have.
	Version int64
	// Revision, if not empty, is the revision that the live record must have.
	Revision string
	// UID, if not empty, is the UID that the live record must have.
	UID string
	// Approve, if not nil, is called with the newest version of the record, or nil, before the other
	// fields are checked. If it returns an error, the operation fails with a *RefusedError. An engine
	// may call Approve several times. The last call gets exactly the version that the write supersedes.
	// An engine may hold locks during the call, so Approve must not call the store.
	Approve func(current *Record) error
}

// UnchangedSince returns the precondition that a record is live at the version that was read.
func UnchangedSince(read Record) Precondition {
	return Precondition{Version: read.Version, UID: read.UID}
}

// IsZero reports whether the precondition is the zero value.
func (p Precondition) IsZero() bool {
	return !p.Absent && !p.Present && p.Version == 0 && p.Revision == "" && p.UID == "" && p.Approve == nil
}

// Check returns nil if the precondition holds for current, the newest version of the record at key.
// current is nil if there is no such record. Errors: *RefusedError from Approve; ErrNotFound or
// *DeletedError if only Present fails; *PreconditionError otherwise.
func (p Precondition) Check(key Key, current *Record) error {
	if p.Approve != nil {
		if err := p.Approve(current); err != nil {
			return &RefusedError{Reason: err}
		}
	}
	live := current != nil && !current.Deleted
	if !live {
		matchesTombstone := p.Absent && current != nil && p.Version == current.Version
		if p.Version != 0 && !matchesTombstone || p.Revision != "" || p.UID != "" {
			return &PreconditionError{Key: key}
		}
		if p.Present {
			if current != nil {
				return &DeletedError{Key: current.Key, Version: current.Version, Updated: current.Updated}
			}
			return ErrNotFound
		}
		return nil
	}
	if p.Absent ||
		p.Version != 0 && p.Version != current.Version ||
		p.Revision != "" && p.Revision != current.Revision ||
		p.UID != "" && p.UID != current.UID {
		return &PreconditionError{Key: current.Key, Current: current}
	}
	return nil
}

// Outcome is what an operation did.
type Outcome int

// The outcomes of an operation. Updated is also the outcome of a change of nothing but metadata,
// and Removed that of Delete and of Purge.
const (
	Unchanged Outcome = iota
	Created
	Updated
	Removed
)

// Result is the result of one operation.
type Result struct {
	Outcome Outcome
	// Record is the newest version after the operation. It is zero if there is none.
	Record Record
}
