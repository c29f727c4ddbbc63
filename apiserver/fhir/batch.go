package fhir

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// maxAnswerSize bounds what the entries of a bundle are answered with together.
const maxAnswerSize = 32 << 20

// tooCostlyError says that a bundle asks for more than one answer may hold.
type tooCostlyError struct{}

func (e *tooCostlyError) Error() string {
	return fmt.Sprintf("the entries of the bundle have answers of more than %d MiB together; ask for less at once", maxAnswerSize>>20)
}

// bundle serves POST at the base: a batch or a transaction.
// R4 http.html#transaction.
func (h *handler) bundle(w http.ResponseWriter, r *request) error {
	// Who has no right here at all is not to learn even from an empty bundle that
	// the site exists. Otherwise each entry asks for the right that it needs.
	var forbidden *access.ForbiddenError
	if err := r.authorizeList(r4.Types[0]); err != nil && !errors.As(err, &forbidden) {
		return err
	}
	if err := refuseOthers(r.query); err != nil {
		return err
	}
	spoken, err := bodyDialect(r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	raw, err := r.readBody(w)
	if err != nil {
		return err
	}
	sent, err := readBundle(raw, cmp.Or(r.site.MaxBundleEntries, defaultMaxBundleEntries))
	if err != nil {
		return err
	}
	conditional := conditionalReferences{}
	if sent.kind == transactionBundle {
		for _, e := range sent.entries {
			if e.resource, err = conditional.replace(e.resource); err != nil {
				return err
			}
		}
	}
	entries := h.entriesOf(sent, r, spoken)
	if sent.kind == batchBundle {
		h.processEach(entries)
	} else if err := h.transact(r, entries, conditional); err != nil {
		return err
	}
	b := newBundle(sent.kind+"-response", store.UnknownTotal, nil)
	for _, e := range entries {
		b.answered(e)
	}
	return r.respondBundle(w, b)
}

// processEach processes the entries of a batch, of which each succeeds or fails by
// itself. R4 http.html#brules.
func (h *handler) processEach(entries []*entry) {
	size := 0
	for _, e := range inOrder(entries) {
		if err := e.perform(h); err != nil {
			e.fail(h, err)
		}
		size = e.account(h, size)
	}
}

// account adds the size of an answer. Where all are too large together, what was
// written is told without the record, and what was read not at all.
func (e *entry) account(h *handler, size int) int {
	switch {
	case size+len(e.answer.body) <= maxAnswerSize:
	case e.what.plan != nil:
		e.answer.body = nil
		e.request.saysOutcome = false
	default:
		e.fail(h, &tooCostlyError{})
	}
	return size + len(e.answer.body)
}
