package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store"
)

// errStale is returned if a record changed after the write read it. The write must decide again.
var errStale = errors.New("the record changed after it was read")

// errNeedsTransaction is returned if one statement cannot do a write, because the record has claims, or
// index rows of a release with another extraction.
var errNeedsTransaction = errors.New("the write needs a transaction")

// optimisticAttempts is the number of attempts of a write that take no locks before they decide on
// the write. Further attempts lock the records first.
const optimisticAttempts = 4

// maxAttempts is the maximum number of attempts of a Write or a Restore that conflicts with other
// writes. After that, Write returns store.ErrUnavailable, and Restore the error of the last attempt.
const maxAttempts = 30

// Write implements store.Store. A single operation is one statement, which changes nothing if the record
// is no longer in the state on which the operation was decided. Several operations are a transaction, and
// so is one that needs locks: for claims, outdated index rows, Requires, Unreferenced or Erase, or after
// optimisticAttempts.
func (s *Store) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	for _, op := range ops {
		if !isStorable(op.Key.Type) || !isStorable(op.Key.ID) {
			return nil, fmt.Errorf("write record %q/%q: type and id must be valid UTF-8 without NUL", op.Key.Type, op.Key.ID)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for attempt := range maxAttempts {
		results, err := s.attempt(ctx, ops, attempt)
		switch {
		case err == nil:
			s.analyzeIfGrown(ctx, len(ops))
			return results, nil
		case errors.Is(err, errStale), hasCode(err, serializationFailure, deadlockDetected, uniqueViolation):
		case isEntryRefused(ctx, err):
			ctx = audit.WithoutWriteEntry(ctx)
			continue
		case !s.lostEarlier(ctx, err):
			return nil, err
		}
		if err := backOff(ctx, attempt); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("write records: conflicts with other writes in %d attempts: %w", maxAttempts, store.ErrUnavailable)
}

// backOff waits for a random time below 2^attempt milliseconds, at most 64.
func backOff(ctx context.Context, attempt int) error {
	timer := time.NewTimer(rand.N(time.Millisecond << min(attempt, 6)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return storeError("wait before another attempt of a write", ctx.Err())
	case <-timer.C:
		return nil
	}
}

// attempt makes one attempt to write. Errors: errStale, and those of Write.
func (s *Store) attempt(ctx context.Context, ops []store.Op, attempt int) ([]store.Result, error) {
	if len(ops) != 1 || len(ops[0].Claims) > 0 || dependsOnOthers(ops[0]) || ops[0].Erase || attempt >= optimisticAttempts {
		return s.transact(ctx, ops)
	}
	result, err := s.writeOne(ctx, ops[0], attempt)
	if errors.Is(err, errNeedsTransaction) {
		return s.transact(ctx, ops)
	}
	if err != nil {
		return nil, err
	}
	return []store.Result{result}, nil
}

// writeOne writes one record by one statement, which concurrent writes may share. Errors: errStale,
// errNeedsTransaction, and those of Write.
func (s *Store) writeOne(ctx context.Context, op store.Op, attempt int) (store.Result, error) {
	e, err := s.prepare(ctx, op, attempt)
	if err != nil {
		return store.Result{}, err
	}
	if e.Action != store.ActionNone {
		if err := s.send(ctx, e, attempt == 0); err != nil {
			return store.Result{}, err
		}
		e.entry.noteStored(ctx)
	}
	return s.result(e.decision), nil
}

// prepare decides on a write of one record. In the first attempt, it does not read the record if the
// operation likely creates it. Errors: errStale, errNeedsTransaction, and those of Write.
func (s *Store) prepare(ctx context.Context, op store.Op, attempt int) (*edit, error) {
	var current *state
	likelyNew := op.Kind == store.Put && (op.Method == store.MethodPost || op.If.Absent)
	if attempt > 0 || !likelyNew {
		var err error
		if current, err = s.find(ctx, op.Key); err != nil {
			return nil, err
		}
		if current != nil && len(current.claims) > 0 {
			return nil, errNeedsTransaction
		}
	}
	p, err := s.decide(op, current, time.Time{}) // the statement sets the time
	if err != nil {
		if attempt == 0 && likelyNew {
			return nil, errStale // because the record was not read, so the error may be wrong
		}
		return nil, err
	}
	if p.Action == store.ActionNone {
		return &edit{decision: &p}, nil
	}
	_, before, outdated := s.indexRows(current)
	if outdated && p.Action != store.ActionAnnotate {
		return nil, errNeedsTransaction
	}
	e := s.edit(&p, current, before, p.Events(op))
	e.entry = s.makeEntry(ctx, &p)
	return e, nil
}

// transact applies operations in a transaction, with locks on the lines of claims and on records.
func (s *Store) transact(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	var results []store.Result
	var t *transaction
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		t = &transaction{site: s}
		if err := t.lock(ctx, tx, ops); err != nil {
			return err
		}
		var err error
		if results, err = t.decide(ctx, ops); err != nil {
			return err
		}
		return t.apply(ctx, tx)
	})
	if refused := new(store.ReferencedError); errors.As(err, &refused) {
		return nil, t.nameReferrers(ctx, refused)
	}
	if err != nil {
		return nil, contractError("write records", err)
	}
	for _, result := range results {
		s.noteNewest(result.Record.Updated)
	}
	s.cacheReferencePaths(t.referencePaths)
	t.entry.noteStored(ctx)
	return results, nil
}

// contractError returns errStale and the errors that store.Store documents unchanged. It wraps all
// other errors by storeError.
func contractError(doing string, err error) error {
	var precondition *store.PreconditionError
	var deleted *store.DeletedError
	var claim *store.ClaimError
	var missing *store.MissingReferenceError
	var refused *store.RefusedError
	if errors.Is(err, errStale) || errors.Is(err, store.ErrNotFound) ||
		errors.As(err, &precondition) || errors.As(err, &deleted) || errors.As(err, &claim) ||
		errors.As(err, &missing) || errors.As(err, &refused) {
		return err
	}
	return storeError(doing, err)
}
