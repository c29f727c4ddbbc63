package store

// OpKind says what an operation does.
type OpKind int

const (
	// Put stores a body: it creates the record, or updates it. A body of the same value as
	// the stored one (Body.SameValue), with the same claims and metadata, changes nothing:
	// the stored bytes stay.
	Put OpKind = iota + 1
	// Delete leaves a tombstone and the history. Deleting what is deleted or
	// never was changes nothing.
	Delete
	// Purge removes the record, its tombstone and its history. Purging what
	// never was changes nothing.
	Purge
)

// Op is one operation of a Write.
type Op struct {
	Kind   OpKind
	Key    Key
	Method Method
	// Body of a Put.
	Body Body
	// Claims, when not nil, are all that the record holds after a Put: those it
	// held before and that are not listed are given up. Nil leaves them as they
	// are. Delete and Purge give up all of them.
	Claims []Claim
	// Metadata, of a Put, is the metadata that the record has afterwards: nil leaves it as
	// it is, an empty one takes it away. To change nothing else makes a revision and no
	// version. Delete and Purge take it away too.
	Metadata []byte
	If       Precondition
	// Requires, of a Put, are records that must be live when the Write is done: stored
	// ones, or put by it.
	Requires []Key
	// Unreferenced, of a Delete or a Purge, asks that no live record refers to the record
	// when the Write is done, neither by a Reference nor by a Mention. Where there is
	// nothing to remove, it asks for nothing.
	Unreferenced bool
	// Bases are the addresses of this site, for Unreferenced: what refers there refers to
	// its records.
	Bases []string
}

// Precondition is what must hold for an operation to happen. The zero value
// asks for nothing. A deleted record counts as absent.
type Precondition struct {
	Absent  bool
	Present bool
	// Version, when not 0, is the version the live record must have or, with Absent, the one
	// that deleted it.
	Version int64
	// Revision, when not empty, is the revision the live record must have.
	Revision string
	// UID, when not empty, is the uid the live record must have.
	UID string
}

// Check returns nil when the precondition holds for the newest version of the
// record at key; current is nil when there is none.
// Errors: ErrNotFound when only Present fails, else *PreconditionError.
func (p Precondition) Check(key Key, current *Record) error {
	live := current != nil && !current.Deleted
	if !live {
		sinceDeleted := p.Absent && current != nil && p.Version == current.Version
		if p.Version != 0 && !sinceDeleted || p.Revision != "" || p.UID != "" {
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

// Outcomes of an operation.
const (
	Unchanged Outcome = iota
	Created
	Updated
	Removed
)

// Result is what an operation did and the newest version after it; the Record
// is zero after a Purge and after a Delete of what never was.
type Result struct {
	Outcome Outcome
	Record  Record
}
