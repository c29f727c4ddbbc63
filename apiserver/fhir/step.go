package fhir

import (
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/search/extract"
	"github.com/paddock-health/paddock/apiserver/store"
)

// step is one attempt at a write: the operation that the request leads to, given what is stored.
type step struct {
	op store.Op
	// sent is the resource that a Put stores, as sent.
	sent body
	// isNew is true if op creates a record under an id that the server has just generated.
	isNew bool
	// found, if not nil, is the response instead of a write: the record that makes the write
	// unnecessary, or an empty record if there is nothing to do.
	found *store.Record
}

// putBody makes the operation a Put of a resource, which was read with r4.Options.Index.
func (s *step) putBody(sent body) {
	read := &sent.resource
	s.sent, s.op.Kind = sent, store.Put
	s.op.Body = store.Body{JSON: read.Body, IDOffset: read.IDOffset, MetaOffset: read.MetaOffset}
	s.op.Values = func() []store.IndexValue { return extract.ValuesOf(sent.text, read.Index) }
}

// stepFunc returns the next step of a write. failed is the error of the last step, nil at first. If
// there is no other step, it returns an error: failed, an error that describes failed better, or the
// error of a read that the next step needs.
type stepFunc func(failed error) (step, error)

// singleStep returns a stepFunc with one step, whatever is stored.
func singleStep(s step) stepFunc {
	return func(failed error) (step, error) { return s, failed }
}

// execute runs steps until one succeeds or there is no other step.
func (r *request) execute(nextStep stepFunc) (store.Result, error) {
	var failed error
	for {
		next, err := nextStep(failed)
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

// pollInterval is the wait for a concurrent write before a search or a transaction is repeated.
const pollInterval = 10 * time.Millisecond
