package fhir

import (
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/settings"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// maxResponseSize is the limit in bytes of the responses to all entries of one Bundle. Beyond it, a
// write is answered without the record and a read with an error.
const maxResponseSize = 32 << 20

// maxConcurrentCreates is the maximum number of creates of one batch that run concurrently. Postgres stores
// concurrent writes with one statement and one commit.
const maxConcurrentCreates = 16

// tooCostlyError is the error of an entry whose response does not fit in the Bundle response.
type tooCostlyError struct{}

func (e *tooCostlyError) Error() string {
	return fmt.Sprintf("the responses to all entries together exceed %d MiB; send fewer entries in one Bundle", maxResponseSize>>20)
}

// bundle serves POST at the base: a batch or a transaction. R4 http.html#transaction.
func (h *handler) bundle(w http.ResponseWriter, r *request) error {
	// A caller without any right at the site must not learn that it exists, not even from an empty
	// Bundle. Any other caller is authorized for each entry.
	var forbidden *access.ForbiddenError
	if err := r.authorizeList(r4.Types[0]); err != nil && !errors.As(err, &forbidden) {
		return err
	}
	if err := rejectUnknownParameters(r.query); err != nil {
		return err
	}
	sentDialect, err := bodyDialect(r.Header)
	if err != nil {
		return err
	}
	raw, err := r.readBody(w)
	if err != nil {
		return err
	}
	sent, err := readBundle(raw, settings.Int(r.site.Limits.MaxBundleEntries, defaultMaxBundleEntries))
	if err != nil {
		return err
	}
	conditional := conditionalReferences{}
	if sent.kind == transactionBundle {
		audit.From(r.Context()).Interaction(interactionTransaction, audit.Execute, store.Key{})
		for _, e := range sent.entries {
			if e.resource, err = conditional.replaceSearchURIs(e.resource); err != nil {
				return err
			}
		}
	}
	entries := h.resolveEntries(sent, r, sentDialect)
	if sent.kind == batchBundle {
		h.processBatch(entries)
	} else if err := h.processTransaction(r, entries, conditional); err != nil {
		return err
	}
	recordStatuses(entries)
	b := newBundleWriter(sent.kind+"-response", store.UnknownTotal, nil)
	for _, e := range entries {
		b.addResponse(e)
	}
	return r.respondBundle(w, b)
}

// processBatch processes the entries of a batch, each of which succeeds or fails by itself. R4
// http.html#brules.
func (h *handler) processBatch(entries []*bundleEntry) {
	size := 0
	for rest := sortForProcessing(entries); len(rest) > 0; {
		n := max(1, countCreates(rest))
		var group errgroup.Group
		group.SetLimit(maxConcurrentCreates)
		for _, e := range rest[:n] {
			group.Go(func() error {
				e.performAlone(h)
				return nil
			})
		}
		_ = group.Wait()
		for _, e := range rest[:n] {
			size = e.addSize(h, size)
		}
		rest = rest[n:]
	}
}

// countCreates returns the number of unconditional creates at the start of entries. They can run
// concurrently, because none of them depends on what another one writes.
func countCreates(entries []*bundleEntry) int {
	for i, e := range entries {
		_, isConditional := e.header["If-None-Exist"]
		if e.err != nil || e.method != http.MethodPost || e.interaction.plan == nil || isConditional {
			return i
		}
	}
	return len(entries)
}

// performAlone performs the interaction of the entry. An error or a panic is the response to this
// entry only.
func (e *bundleEntry) performAlone(h *handler) {
	fail := func(_ http.ResponseWriter, _ *http.Request, err error) { e.fail(h, err) }
	web.Recover(h.Log, fail, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if err := e.perform(h); err != nil {
			e.fail(h, err)
		}
	})).ServeHTTP(e.response, e.request.Request)
}

// addSize returns size plus the size of the entry's response. If the sum exceeds maxResponseSize,
// it removes the body from the response to a write, and replaces the response to a read by an
// error.
func (e *bundleEntry) addSize(h *handler, size int) int {
	switch {
	case size+len(e.response.body) <= maxResponseSize:
	case e.interaction.plan != nil, e.interaction.verb == verbPurge:
		e.response.body = nil
	default:
		e.fail(h, &tooCostlyError{})
	}
	return size + len(e.response.body)
}
