package fhir

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// transactionAttempts is how often a transaction is decided anew because other
// writes came in between.
const transactionAttempts = 50

// entryError says why an entry makes its transaction fail.
type entryError struct {
	// at is the FHIRPath of the entry.
	at  string
	err error
}

func (e *entryError) Error() string { return e.at + ": " + e.err.Error() }

func (e *entryError) Unwrap() error { return e.err }

// problem is that of the entry, with expressions that say where in the bundle.
func (e *entryError) problem() problem {
	p := problemOf(e.err)
	p.issues = slices.Clone(p.issues)
	for i, issue := range p.issues {
		_, below, inResource := strings.Cut(issue.Expression, ".")
		switch {
		case strings.HasPrefix(issue.Expression, "Bundle"):
			continue
		case issue.Expression == "":
			p.issues[i].Expression = e.at
		case inResource:
			p.issues[i].Expression = e.at + ".resource." + below
		default:
			p.issues[i].Expression = e.at + ".resource"
		}
	}
	return p
}

// writing is an entry that writes, with what that comes to.
type writing struct {
	*entry
	decide decision
	step   step
	done   store.Result
}

// transact processes the entries of a transaction, which succeed or fail together.
// R4 http.html#trules.
func (h *handler) transact(r *request, entries []*entry, conditional conditionalReferences) error {
	if r.site.Store == nil {
		return store.ErrUnavailable
	}
	writings, readings, err := h.planAll(entries)
	if err != nil {
		return err
	}
	// What is read must be readable before anything is written: then only what is
	// not there yet, or any more, can go wrong afterwards.
	for _, e := range readings {
		if err := e.perform(h); err != nil {
			if len(writings) == 0 || !isAbsent(err) {
				return &entryError{e.at, err}
			}
		}
	}
	if err := h.writeAll(r, writings, conditional); err != nil {
		return err
	}
	size := 0
	for _, e := range writings {
		e.begin()
		if err := e.what.answer(e.answer, e.request, e.done); err != nil {
			return &entryError{e.at, err}
		}
		size = e.account(h, size)
	}
	for _, e := range readings {
		if len(writings) > 0 {
			if err := e.perform(h); err != nil {
				e.fail(h, err)
			}
		}
		size = e.account(h, size)
	}
	return nil
}

// planAll reads what all entries ask for, in the order of processing.
func (h *handler) planAll(entries []*entry) (writings []*writing, readings []*entry, err error) {
	var wrong r4.Errors
	for _, e := range entries {
		wrong = append(wrong, e.issues...)
	}
	if len(wrong) > 0 {
		return nil, nil, wrong[:min(len(wrong), maxIssues)]
	}
	for _, e := range inOrder(entries) {
		err := e.err
		switch {
		case err != nil:
		case e.what.plan != nil:
			w := &writing{entry: e}
			e.begin()
			if err = e.request.authorize(e.what.verb); err == nil {
				w.decide, err = e.what.plan(e.answer, e.request)
			}
			writings = append(writings, w)
		case e.method == http.MethodGet || e.method == http.MethodHead:
			readings = append(readings, e)
		default:
			err = r4.Errors{invalidBundle(e.at+".request", "a transaction takes no operations and no searches by POST; send a batch")}
		}
		if err != nil {
			return nil, nil, &entryError{e.at, err}
		}
	}
	return writings, readings, nil
}

// writeAll writes what the entries come to, all of it or nothing.
func (h *handler) writeAll(r *request, writings []*writing, conditional conditionalReferences) error {
	for attempt := 0; ; attempt++ {
		ops, err := h.settleAll(r, writings, conditional)
		if err != nil {
			return err
		}
		if len(ops) > 1 && !r.site.Store.Atomic() {
			return store.ErrNotAtomic
		}
		var results []store.Result
		if len(ops) > 0 {
			results, err = r.write(ops)
		}
		err = blame(writings, err)
		if err == nil {
			report(writings, results)
			return nil
		}
		if !isRace(err) || attempt == transactionAttempts {
			return err
		}
		if err := web.Sleep(r.Context(), poll); err != nil {
			return err
		}
	}
}

// isRace reports whether a write whose preconditions held a moment ago met another.
func isRace(err error) bool {
	var claimed *store.ClaimError
	return isConflict(err) || isAbsent(err) || errors.As(err, &claimed)
}

// report tells the entries what became of their writes.
func report(writings []*writing, results []store.Result) {
	for _, w := range writings {
		if w.step.found != nil {
			w.done = store.Result{Outcome: store.Unchanged, Record: *w.step.found}
			continue
		}
		w.done, results = results[0], results[1:]
	}
}

// settleAll finds the operations of a transaction, with preconditions that pin
// what they were decided on, and resolves the links between its entries.
func (h *handler) settleAll(r *request, writings []*writing, conditional conditionalReferences) ([]store.Op, error) {
	for _, w := range writings {
		var err error
		if w.step, err = w.settle(); err != nil {
			return nil, &entryError{w.at, err}
		}
	}
	if err := checkOnce(writings); err != nil {
		return nil, err
	}
	links, err := newLinks(h, r, writings, conditional)
	if err != nil {
		return nil, err
	}
	var ops []store.Op
	for _, w := range writings {
		if w.step.found != nil {
			continue
		}
		if err := links.resolve(w); err != nil {
			return nil, &entryError{w.at, err}
		}
		ops = append(ops, w.step.op)
	}
	return ops, nil
}

// settle decides until the step's precondition holds, and pins the state in which
// it does.
func (w *writing) settle() (step, error) {
	var failed error
	for {
		next, err := w.decide(failed)
		if err != nil || next.found != nil || next.isNew || next.op.If.Version != 0 && next.op.If.UID != "" {
			return next, err
		}
		current, err := w.request.site.Store.Get(w.request.Context(), next.op.Key)
		switch {
		case err == nil:
			failed = next.op.If.Check(next.op.Key, &current)
			next.op.If = exactly(current)
		case isAbsent(err):
			if failed = next.op.If.Check(next.op.Key, nil); errors.Is(failed, store.ErrNotFound) {
				failed = err // which tells a deleted record from one that never was
			}
			next.op.If = store.Precondition{Absent: true}
		default:
			return step{}, err
		}
		if failed == nil {
			return next, nil
		}
	}
}

// checkOnce makes sure that no record is written twice.
func checkOnce(writings []*writing) error {
	seen := map[string]string{}
	for _, w := range writings {
		if w.step.found != nil {
			continue
		}
		names := []string{w.step.op.Key.Type + "/" + strings.ToLower(w.step.op.Key.ID)}
		for _, claim := range w.step.op.Claims {
			names = append(names, claim.Line)
		}
		for _, name := range names {
			if first, twice := seen[name]; twice {
				return r4.Errors{invalidBundle(w.at, "this entry and "+first+" are about one record, "+r4.Quote(name)+"; a transaction may have it once")}
			}
			seen[name] = w.at
		}
	}
	return nil
}
