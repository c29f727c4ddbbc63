package fhir

import (
	"net/http"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/jsonpatch"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

const patchFormat = "application/json-patch+json"

// patch plans PATCH …/{id}. R4 http.html#patch: the outcome is taken as an update is.
func (h *handler) patch(w http.ResponseWriter, r *request) (decision, error) {
	if err := h.takeShown(r); err != nil {
		return nil, err
	}
	asked, err := parseConditions(r.Header)
	if err != nil {
		return nil, err
	}
	if asked.absent {
		return nil, &invalidError{code: codeInvalidHeader, diagnostics: "If-None-Match makes no sense on a patch"}
	}
	patch, err := r.readPatch(w)
	if err != nil {
		return nil, err
	}
	return func(failed error) (step, error) {
		if failed != nil && !isConflict(failed) {
			return step{}, failed
		}
		current, err := r.site.Store.Get(r.Context(), r.key())
		if isAbsent(err) && asked.ifMatch.given {
			err = &store.PreconditionError{Key: r.key()}
		}
		if err != nil {
			return step{}, err
		}
		if err := asked.check(current); err != nil {
			return step{}, err
		}
		return r.applyPatch(patch, current)
	}, nil
}

// readPatch reads the body as a JSON Patch.
func (r *request) readPatch(w http.ResponseWriter) (jsonpatch.Patch, error) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if kind = strings.TrimSpace(kind); !strings.EqualFold(kind, patchFormat) {
		return nil, &patchTypeError{kind: kind}
	}
	raw, err := r.readBody(w)
	if err != nil {
		return nil, err
	}
	return jsonpatch.Parse(raw)
}

// applyPatch is the step that stores what a patch makes of a record. A patch
// speaks neither dialect of FHIR, so the contract's says what may be missing.
func (r *request) applyPatch(patch jsonpatch.Patch, current store.Record) (step, error) {
	before, err := render(nil, current, part{})
	if err != nil {
		return step{}, err
	}
	after, err := patch.Apply(before, int(r.maxBodySize()))
	if err != nil {
		return step{}, err
	}
	sent, err := r.readText(after, contractDialect)
	if err != nil {
		return step{}, err
	}
	if sent.resource.ID != current.Key.ID {
		return step{}, r.wrongID("the patch makes the id " + r4.Quote(sent.resource.ID) + " of " + r4.Quote(current.Key.ID) + "; it must leave the id as it is")
	}
	return step{sent: sent, op: store.Op{
		Kind: store.Put, Key: current.Key, Method: store.MethodPatch,
		Body: sent.stored(), If: exactly(current),
	}}, nil
}
