package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
)

// errStale says that a record changed since it was read: read again and decide again.
var errStale = errors.New("the record changed meanwhile")

// errNeedsTransaction says that one statement does not do for a write.
var errNeedsTransaction = errors.New("the write needs a transaction")

// optimism is how often a write tries without taking locks first.
const optimism = 4

// mostAttempts bounds how often a write that met others is tried again.
const mostAttempts = 30

// Write implements store.Store. One operation without claims is one statement, guarded by
// the state it was decided on; all else is a transaction.
func (s *Site) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	for _, op := range ops {
		if !storable(op.Key.Type) || !storable(op.Key.ID) {
			return nil, fmt.Errorf("write record: the id of %q is not text", op.Key)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for attempt := range mostAttempts {
		results, err := s.try(ctx, ops, attempt)
		if !errors.Is(err, errStale) && !hasCode(err, serializationFailure, deadlockDetected, uniqueViolation) {
			if err == nil {
				s.grown(ctx, len(ops))
			}
			return results, err
		}
		if err := pause(ctx, attempt); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("write under contention: %w", store.ErrUnavailable)
}

// pause spreads the attempts of writers that meet.
func pause(ctx context.Context, attempt int) error {
	timer := time.NewTimer(rand.N(time.Millisecond << min(attempt, 6)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return storeError("write under contention", ctx.Err())
	case <-timer.C:
		return nil
	}
}

func (s *Site) try(ctx context.Context, ops []store.Op, attempt int) ([]store.Result, error) {
	if len(ops) != 1 || len(ops[0].Claims) > 0 || dependsOnOthers(ops[0]) || attempt >= optimism {
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

// writeOne writes one record by one statement. What is most likely new is written without
// being looked for.
func (s *Site) writeOne(ctx context.Context, op store.Op, attempt int) (store.Result, error) {
	var current *state
	likelyNew := op.Kind == store.Put && (op.Method == store.MethodPost || op.If.Absent)
	if attempt > 0 || !likelyNew {
		var err error
		if current, err = s.find(ctx, op.Key); err != nil {
			return store.Result{}, err
		}
		if current != nil && len(current.claims) > 0 {
			return store.Result{}, errNeedsTransaction
		}
	}
	p, err := s.decide(op, current, time.Time{}) // the statement finds the time
	if err != nil {
		if attempt == 0 && likelyNew {
			return store.Result{}, errStale // decided without looking
		}
		return store.Result{}, err
	}
	if p.action == doNothing {
		return s.result(&p, current), nil
	}
	before, outdated := s.indexed(current)
	if outdated && p.action != doAnnotate {
		return store.Result{}, errNeedsTransaction
	}
	c := s.change(&p, current, before, s.stamp)
	var updated int64
	err = s.pool.QueryRow(ctx, c.sql, c.statement.args...).Scan(&p.next.rid, &updated)
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Result{}, errStale
	}
	if err != nil {
		return store.Result{}, storeError("write record", err)
	}
	p.next.updated = time.UnixMilli(updated).UTC()
	s.acknowledged(p.next.updated)
	s.rememberPaths(c.paths)
	return s.result(&p, current), nil
}

// transact applies operations in a transaction, under locks on the lines they claim and on
// their records.
func (s *Site) transact(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	var results []store.Result
	var paths []path
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		t := &transaction{site: s}
		if err := t.lock(ctx, tx, ops); err != nil {
			return err
		}
		var err error
		if results, err = t.decide(ops); err != nil {
			return err
		}
		paths = t.paths
		return t.apply(ctx, tx)
	})
	if err != nil {
		return nil, contractError("write records", err)
	}
	for _, result := range results {
		s.acknowledged(result.Record.Updated)
	}
	s.rememberPaths(paths)
	return results, nil
}

// contractError leaves the contract's own errors as they are.
func contractError(doing string, err error) error {
	var precondition *store.PreconditionError
	var deleted *store.DeletedError
	var claim *store.ClaimError
	var missing *store.MissingReferenceError
	var referenced *store.ReferencedError
	if errors.Is(err, errStale) || errors.Is(err, store.ErrNotFound) ||
		errors.As(err, &precondition) || errors.As(err, &deleted) || errors.As(err, &claim) ||
		errors.As(err, &missing) || errors.As(err, &referenced) {
		return err
	}
	return storeError(doing, err)
}
