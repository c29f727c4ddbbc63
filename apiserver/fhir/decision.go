package fhir

import (
	"errors"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// step is what a write interaction comes to in view of what is stored.
type step struct {
	op store.Op
	// sent is what a Put stores, as it was before it was read.
	sent body
	// isNew is set where op creates a record under an id that nobody has had.
	isNew bool
	// found, when not nil, is answered instead of writing: the record that makes
	// it needless, or no record where there is nothing to do.
	found *store.Record
}

// decision works out the next step of a write interaction. It is told why the
// last one failed, nil the first time, and returns that when it has no other. Where
// there may be another, and no time is left for it, the answer is that: what failed
// is not the last word.
type decision func(failed error) (step, error)

// once decides for one step, whatever is stored.
func once(s step) decision {
	return func(failed error) (step, error) { return s, failed }
}

// carryOut writes what a decision comes to.
func (r *request) carryOut(decide decision) (store.Result, error) {
	var failed error
	for {
		next, err := decide(failed)
		if err != nil {
			return store.Result{}, err
		}
		if next.found != nil {
			return store.Result{Outcome: store.Unchanged, Record: *next.found}, nil
		}
		results, err := r.write([]store.Op{next.op})
		if err == nil {
			return results[0], nil
		}
		failed = err
	}
}

// exactly is the precondition that a record is as it was read.
func exactly(rec store.Record) store.Precondition {
	return store.Precondition{Version: rec.Version, UID: rec.UID}
}

// isConflict reports whether err says that a record is not as a write expected it.
func isConflict(err error) bool {
	var conflict *store.PreconditionError
	return errors.As(err, &conflict)
}

// poll is how often a record is looked for that another write is about to make.
const poll = 10 * time.Millisecond
