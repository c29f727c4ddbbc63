package fhir

import (
	"errors"

	"github.com/paddock-health/paddock/apiserver/fhir/integrity"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// write writes operations: where the site enforces references, only if what is referred
// to is there, and nothing refers to what is removed.
func (r *request) write(ops []store.Op) ([]store.Result, error) {
	if !r.site.EnforceReferences {
		return r.site.Store.Write(r.Context(), ops)
	}
	writer := integrity.Writer{
		Store: r.site.Store, Authorizer: r.authorizer, Caller: r.caller, Site: r.site.Access, Bases: r.bases(),
	}
	return writer.Write(r.Context(), ops)
}

// danglingIssues are the issues of references to what is not there.
func danglingIssues(dangling *integrity.DanglingError) []r4.Issue {
	told := dangling.References[:min(len(dangling.References), maxIssues)]
	issues := make([]r4.Issue, 0, len(told))
	for _, reference := range told {
		issues = append(issues, r4.Issue{
			Severity: r4.SeverityError, Type: issueNotFound, Code: codeReferenceNotFound,
			Expression: reference.Expression, Diagnostics: reference.Problem(),
		})
	}
	return issues
}

// blame tells which entry of a transaction an error about references is of.
func blame(writings []*writing, err error) error {
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
	for _, w := range writings {
		if w.step.found == nil && w.step.op.Key == key {
			return &entryError{w.at, err}
		}
	}
	return err
}
