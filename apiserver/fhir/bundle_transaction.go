package fhir

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// maxTransactionAttempts is how often one transaction is retried after conflicts with concurrent
// writes. If the last retry fails too, its conflict is the response.
const maxTransactionAttempts = 50

// entryError is an error of one entry that makes its transaction fail.
type entryError struct {
	// at is the FHIRPath of the entry.
	at  string
	err error
}

func (e *entryError) Error() string { return e.at + ": " + e.err.Error() }

func (e *entryError) Unwrap() error { return e.err }

// failed returns the error of an entry that makes its transaction fail.
func (e *bundleEntry) failed(err error) *entryError {
	return &entryError{e.path, e.request.describe(err)}
}

// problem returns the response to the error. Its expressions are FHIRPaths from the Bundle.
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

// entryWrite is an entry that writes. step is its current attempt, and result the result of its last
// attempt.
type entryWrite struct {
	*bundleEntry
	nextStep stepFunc
	step     step
	result   store.Result
}

// processTransaction processes the entries of a transaction, which succeed or fail together. R4
// http.html#trules.
func (h *handler) processTransaction(r *request, entries []*bundleEntry, conditional conditionalReferences) error {
	if r.site.Store == nil {
		return store.ErrUnavailable
	}
	writes, reads, err := h.planEntries(entries)
	if err != nil {
		return err
	}
	// Each read is tried before the writes, so that an error makes the transaction fail while
	// nothing is written. A record that is absent now may exist after the writes. The response is
	// kept only if there are no writes.
	size := 0
	for _, e := range reads {
		err := e.perform(h)
		switch {
		case err != nil && (len(writes) == 0 || !store.IsAbsent(err)):
			return e.failed(err)
		case len(writes) == 0:
			size = e.addSize(h, size)
		default:
			e.reset()
		}
	}
	if len(writes) == 0 {
		return nil
	}
	if err := h.writeEntries(r, writes, conditional); err != nil {
		return err
	}
	for _, e := range writes {
		e.reset()
		if err := e.interaction.respond(e.response, e.request, e.result); err != nil {
			return e.failed(err)
		}
		size = e.addSize(h, size)
	}
	for _, e := range reads {
		if err := e.perform(h); err != nil {
			e.fail(h, err)
		}
		size = e.addSize(h, size)
	}
	return nil
}

// planEntries splits the entries into writes and reads, in the order of processing. It authorizes the
// writes, and reads their headers and bodies. Errors: r4.Errors, *entryError.
func (h *handler) planEntries(entries []*bundleEntry) (writes []*entryWrite, reads []*bundleEntry, err error) {
	var wrong r4.Errors
	for _, e := range entries {
		wrong = append(wrong, e.issues...)
	}
	if len(wrong) > 0 {
		return nil, nil, wrong[:min(len(wrong), maxIssues)]
	}
	for _, e := range sortForProcessing(entries) {
		err := e.err
		switch {
		case err != nil:
		case e.interaction.plan != nil:
			w := &entryWrite{bundleEntry: e}
			e.reset()
			if err = e.request.authorize(e.interaction.verb); err == nil {
				w.nextStep, err = e.interaction.plan(e.response, e.request)
			}
			writes = append(writes, w)
		case e.method == http.MethodGet || e.method == http.MethodHead:
			reads = append(reads, e)
		default:
			err = r4.Errors{invalidBundle(e.path+".request", "a transaction supports neither operations nor searches by POST; send them in a batch")}
		}
		if err != nil {
			return nil, nil, e.failed(err)
		}
	}
	return writes, reads, nil
}

// writeEntries writes all entries or none. It retries after conflicts with concurrent writes.
func (h *handler) writeEntries(r *request, writes []*entryWrite, conditional conditionalReferences) error {
	for attempt := 0; ; attempt++ {
		ops, err := h.resolveWrites(r, writes, conditional)
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
		err = attributeToEntry(writes, err)
		if err == nil {
			assignResults(writes, results)
			return nil
		}
		if !isRace(err) || attempt == maxTransactionAttempts {
			return err
		}
		if err := web.Sleep(r.Context(), pollInterval); err != nil {
			return err
		}
	}
}

// isRace reports whether err can stem from a concurrent write, so that another attempt may succeed.
func isRace(err error) bool {
	var claimed *store.ClaimError
	return store.IsConflict(err) || store.IsAbsent(err) || errors.As(err, &claimed)
}

// assignResults stores in each entry the result of its write, and records the written records in the
// audit log.
func assignResults(writes []*entryWrite, results []store.Result) {
	for _, w := range writes {
		if w.step.found != nil {
			w.result = store.Result{Outcome: store.Unchanged, Record: *w.step.found}
			continue
		}
		w.result, results = results[0], results[1:]
		audit.From(w.request.Context()).AddWritten(w.result.Record.Key)
	}
}

// resolveWrites returns the operations of a transaction, with the links between its entries
// resolved. Their preconditions require that the records are as they were read.
func (h *handler) resolveWrites(r *request, writes []*entryWrite, conditional conditionalReferences) ([]store.Op, error) {
	for _, w := range writes {
		var err error
		if w.step, err = w.resolve(); err != nil {
			return nil, w.failed(err)
		}
	}
	if err := checkDistinct(writes); err != nil {
		return nil, err
	}
	links, err := newLinkResolver(h, r, writes, conditional)
	if err != nil {
		return nil, err
	}
	var ops []store.Op
	for _, w := range writes {
		if w.step.found != nil {
			continue
		}
		if err := links.resolveEntry(w); err != nil {
			return nil, w.failed(err)
		}
		ops = append(ops, w.step.op)
	}
	return ops, nil
}

// resolve returns the first step whose precondition holds. It replaces the precondition by one that
// requires that the record does not change until it is written. It returns a step unchanged if the
// step needs no write, creates a record under a new id, or has such a precondition already.
func (w *entryWrite) resolve() (step, error) {
	var failed error
	var deleted *store.DeletedError
	for {
		next, err := w.nextStep(failed)
		if err != nil || next.found != nil || next.isNew || next.op.If.Version != 0 && next.op.If.UID != "" {
			return next, err
		}
		current, err := w.request.site.Store.Get(w.request.Context(), next.op.Key)
		switch {
		case err == nil:
			failed = next.op.If.Check(next.op.Key, &current)
			next.op.If = store.UnchangedSince(current)
		case errors.As(err, &deleted):
			failed = next.op.If.Check(next.op.Key, &store.Record{Key: deleted.Key, Version: deleted.Version, Updated: deleted.Updated, Deleted: true})
			next.op.If = store.Precondition{Absent: true, Version: deleted.Version}
		case errors.Is(err, store.ErrNotFound):
			failed = next.op.If.Check(next.op.Key, nil)
			next.op.If = store.Precondition{Absent: true}
		default:
			return step{}, err
		}
		if failed == nil {
			return next, nil
		}
	}
}

// checkDistinct returns an error if two entries write the same record or claim the same criteria, or
// if one deletes the record that a conditional create finds. writes are in the order of processing, so
// deletions come first. R4 http.html#trules. Errors: r4.Errors.
func checkDistinct(writes []*entryWrite) error {
	seen := map[string]string{}
	for _, w := range writes {
		if w.step.found != nil {
			name := lowerReference(w.step.found.Key)
			if first, deleted := seen[name]; deleted {
				return r4.Errors{invalidBundle(w.path, "the criteria of this entry match "+r4.Quote(name)+", which "+first+" deletes; send the two entries in separate transactions")}
			}
			continue
		}
		names := []string{lowerReference(w.step.op.Key)}
		for _, claim := range w.step.op.Claims {
			names = append(names, claim.Line)
		}
		for i, name := range names {
			if first, twice := seen[name]; twice {
				common := "write the same record, " + r4.Quote(name)
				if i > 0 {
					common = "have the same criteria"
				}
				return r4.Errors{invalidBundle(w.path, "this entry and "+first+" "+common+"; send one of the two entries")}
			}
			seen[name] = w.path
		}
	}
	return nil
}

// lowerReference returns the relative reference to a record with its id in lower case, because ids are
// case-insensitive.
func lowerReference(key store.Key) string { return key.Type + "/" + strings.ToLower(key.ID) }
