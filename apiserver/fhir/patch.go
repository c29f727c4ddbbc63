package fhir

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/jsonpatch"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// patchFormat is the only supported media type of patches.
const patchFormat = "application/json-patch+json"

// patch plans PATCH …/{id}. The patched resource is validated as an update is. R4 http.html#patch.
func (h *handler) patch(w http.ResponseWriter, r *request) (stepFunc, error) {
	if err := h.parseProjection(r); err != nil {
		return nil, err
	}
	conditions, err := parsePreconditions(r.Header)
	if err != nil {
		return nil, err
	}
	if conditions.absent {
		return nil, &invalidError{code: codeInvalidHeader, diagnostics: "If-None-Match is not supported on a patch; omit the header"}
	}
	patch, err := r.readPatch(w)
	if err != nil {
		return nil, err
	}
	return func(failed error) (step, error) {
		if failed != nil && !store.IsConflict(failed) {
			return step{}, failed
		}
		current, err := r.site.Store.Get(r.Context(), r.key())
		if store.IsAbsent(err) && conditions.ifMatch.Given {
			err = &store.PreconditionError{Key: r.key()}
		}
		if err != nil {
			return step{}, err
		}
		if err := conditions.check(current); err != nil {
			return step{}, err
		}
		return r.applyPatch(patch, current)
	}, nil
}

// readPatch reads the body as a JSON Patch. Errors: *patchTypeError, *jsonpatch.InvalidError and
// those of readBody.
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

// applyPatch returns the step that stores the patched record. Errors: those of patched. If the caller may not
// get the record, the error is that of authorizeGet, also for a patch that uses stored values.
func (r *request) applyPatch(patch jsonpatch.Patch, current store.Record) (step, error) {
	refused := r.authorizeGet(current.Key)
	if refused != nil && patch.UsesStoredValues() {
		return step{}, refused
	}
	patched, err := r.patched(patch, current)
	if err != nil {
		return step{}, cmp.Or(refused, err)
	}
	return patched, nil
}

// patched is applyPatch for callers who may get the record. A patch has no dialect, so the contract's dialect
// decides which elements may be missing.
func (r *request) patched(patch jsonpatch.Patch, current store.Record) (step, error) {
	before, err := render(nil, current, projection{})
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
		return step{}, r.idError("the patch changes the id from " + r4.Quote(current.Key.ID) + " to " + r4.Quote(sent.resource.ID) + "; send a patch that leaves the id unchanged")
	}
	patched := step{op: store.Op{Key: current.Key, Method: store.MethodPatch, If: store.UnchangedSince(current)}}
	patched.putBody(sent)
	return patched, nil
}
