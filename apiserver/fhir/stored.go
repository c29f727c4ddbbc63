package fhir

import (
	"slices"
	"time"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// codeNotStored is the code of a body that does not have the form in which bodies are stored.
const codeNotStored = "not_stored_form"

// CheckStored returns the issues in the stored body of a record, or nil if there are none. Another
// site may have written the body. An empty body is that of a deleted version. A body is accepted if one
// of the two dialects would store it.
func CheckStored(key store.Key, body store.Body) []r4.Issue {
	notStored := []r4.Issue{{Code: codeNotStored, Expression: key.Type, Diagnostics: "the body must have an empty id at idOffset, and a meta without versionId and lastUpdated at metaOffset"}}
	if len(body.JSON) == 0 {
		if r4.ValidID(key.ID) {
			return nil
		}
		return []r4.Issue{{Code: codeNotStored, Expression: key.Type + ".id", Diagnostics: "the id must have " + r4.IDPattern}}
	}
	if !r4.ValidID(key.ID) || !inside(body.IDOffset, body.JSON) || !inside(body.MetaOffset, body.JSON) {
		return notStored
	}
	text := r4.AppendJSON(nil, body.JSON, body.IDOffset, body.MetaOffset, key.ID, 1, time.Unix(0, 0))
	resource, err := r4.Read(text, r4.Options{Type: key.Type, Optional: contractDialect.optional})
	if err != nil {
		return errorIssues(problemOf(err).issues)
	}
	// With wrong offsets, Read does not remove what AppendJSON inserted, so the bodies differ.
	if read := (store.Body{JSON: resource.Body}); resource.ID != key.ID || !read.SameValue(body) {
		return notStored
	}
	return nil
}

func inside(offset int, text []byte) bool { return offset > 0 && offset < len(text) }

// errorIssues returns the issues that are errors.
func errorIssues(issues []r4.Issue) []r4.Issue {
	return slices.DeleteFunc(issues, func(i r4.Issue) bool { return i.Severity != r4.SeverityError })
}
