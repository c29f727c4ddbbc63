package fhir

import (
	"cmp"
	"errors"
	"slices"

	"github.com/paddock-health/paddock/apiserver/fhir/integrity"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// write writes operations. On a site that enforces references, it fails if a referenced record does
// not exist or is hidden from the caller, or if a deleted record is still referenced. Errors:
// *integrity.DanglingError, *integrity.ReferencedError, those of finding the caller's rights and of
// the store, and in place of a *integrity.DanglingError those of hidePatched.
func (r *request) write(ops []store.Op) ([]store.Result, error) {
	if !r.site.EnforceReferences {
		return r.site.Store.Write(r.Context(), ops)
	}
	writer := integrity.Writer{
		Store: r.site.Store, Authorizer: r.authorizer, Caller: r.caller, Site: r.site.Access, Bases: r.bases(),
	}
	results, err := writer.Write(r.Context(), ops)
	return results, r.hidePatched(ops, err)
}

// hidePatched returns err or, if err has references of a patched record that the caller may not get, the error
// of authorizeGet. The references can be those of the stored record.
func (r *request) hidePatched(ops []store.Op, err error) error {
	var dangling *integrity.DanglingError
	if !errors.As(err, &dangling) {
		return err
	}
	isPatch := func(op store.Op) bool { return op.Key == dangling.Key && op.Method == store.MethodPatch }
	if !slices.ContainsFunc(ops, isPatch) {
		return err
	}
	return cmp.Or(r.authorizeGet(dangling.Key), err)
}

func danglingIssues(dangling *integrity.DanglingError) []r4.Issue {
	reported := dangling.References[:min(len(dangling.References), maxIssues)]
	issues := make([]r4.Issue, 0, len(reported))
	for _, reference := range reported {
		issues = append(issues, r4.Issue{
			Severity: r4.SeverityError, Type: issueNotFound, Code: codeReferenceNotFound,
			Expression: reference.Expression, Diagnostics: reference.Problem(),
		})
	}
	return issues
}

// attributeToEntry wraps an error about references in the entryError of the entry that caused it.
// Other errors are returned unchanged.
func attributeToEntry(writes []*entryWrite, err error) error {
	var dangling *integrity.DanglingError
	var referenced *integrity.ReferencedError
	var key store.Key
	switch {
	case errors.As(err, &dangling):
		key = dangling.Key
	case errors.As(err, &referenced):
		key = referenced.Key
	default:
		return err
	}
	for _, w := range writes {
		if w.step.found == nil && w.step.op.Key == key {
			return &entryError{w.path, err}
		}
	}
	return err
}
