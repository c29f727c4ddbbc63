package fhir

import (
	"errors"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// localReference is a literal reference to a record that this site can have.
type localReference struct {
	r4.Literal
	to store.Key
}

// localReferences lists the literal references of what an operation stores, as far as
// they are to records of this site: relative, or below one of its addresses. That a
// reference is to a version asks for the record only. R4 references.html#literal.
func localReferences(recordType string, body []byte, bases []string) []localReference {
	var found []localReference
	for _, literal := range r4.Literals(body, recordType) {
		base, typeName, id, ok := r4.SplitAddress(literal.Reference)
		if ok && (base == "" || slices.Contains(bases, base)) {
			found = append(found, localReference{literal, folded(store.Key{Type: typeName, ID: id})})
		}
	}
	return found
}

// folded is a key as records are told apart by it.
func folded(key store.Key) store.Key {
	return store.Key{Type: key.Type, ID: strings.ToLower(key.ID)}
}

// write writes operations: where the site enforces references, only if what is referred
// to is there, and nothing refers to what is removed.
// Errors: *danglingError and *referencedError, and those of the store.
func (r *request) write(ops []store.Op) ([]store.Result, error) {
	if !r.site.EnforceReferences {
		return r.site.Store.Write(r.Context(), ops)
	}
	guarded := slices.Clone(ops)
	put := map[store.Key]bool{}
	for _, op := range ops {
		put[folded(op.Key)] = op.Kind == store.Put
	}
	for i := range guarded {
		if err := r.guard(&guarded[i], put); err != nil {
			return nil, err
		}
	}
	results, err := r.site.Store.Write(r.Context(), guarded)
	return results, r.explain(err, ops)
}

// guard makes an operation depend on the records that it refers to, or that refer to it.
func (r *request) guard(op *store.Op, put map[store.Key]bool) error {
	if op.Kind != store.Put {
		op.Unreferenced, op.Bases = true, r.bases()
		return nil
	}
	references := localReferences(op.Key.Type, op.Body.JSON, r.bases())
	hidden, err := r.hidden(references, put)
	if err == nil && len(hidden) > 0 {
		hidden, err = r.without(hidden, op.Key)
	}
	switch {
	case err != nil:
		return err
	case len(hidden) > 0:
		return &danglingError{op.Key, hidden}
	}
	seen := map[store.Key]bool{}
	for _, reference := range references {
		if !seen[reference.to] {
			seen[reference.to] = true
			op.Requires = append(op.Requires, reference.to)
		}
	}
	return nil
}

// hidden are the references to records that the caller may not read, beside those put:
// the first ones, where there are more than are told of. They count as missing, so that
// nobody can find out by references what is there.
func (r *request) hidden(references []localReference, put map[store.Key]bool) ([]localReference, error) {
	var hidden []localReference
	for _, reference := range references {
		if put[reference.to] || len(hidden) == maxIssues {
			continue
		}
		readable, err := r.mayRead(reference.to)
		if err != nil {
			return nil, err
		}
		if !readable {
			hidden = append(hidden, reference)
		}
	}
	return hidden, nil
}

// mayRead reports whether the caller may read a record, by any right. That to all records
// of its type is asked for first: it is likelier, and known from the last one.
func (r *request) mayRead(key store.Key) (bool, error) {
	kind, _ := r4.TypeOf(key.Type)
	for _, action := range []access.Action{{Verb: "list"}, {Verb: "get"}, {Verb: "get", Name: strings.ToLower(key.ID)}} {
		action.Group, action.Resource = Group, kind.Resource
		err := r.authorizer.Authorize(r.Context(), r.caller, r.site.Access, action)
		if forbidden := new(access.ForbiddenError); !errors.As(err, &forbidden) {
			return err == nil, err
		}
	}
	return false, nil
}

// without leaves out the references that the record has already, if the caller may read
// it: an update need not drop what others wrote.
func (r *request) without(references []localReference, key store.Key) ([]localReference, error) {
	if readable, err := r.mayRead(key); err != nil || !readable {
		return references, err
	}
	current, err := r.site.Store.Get(r.Context(), key)
	if isAbsent(err) {
		return references, nil
	}
	if err != nil {
		return nil, err
	}
	there := map[store.Key]bool{}
	for _, reference := range localReferences(key.Type, current.Body.JSON, r.bases()) {
		there[reference.to] = true
	}
	return slices.DeleteFunc(references, func(reference localReference) bool { return there[reference.to] }), nil
}

// explain tells which elements refer to what is not there, and of what refers to a record
// only that which the caller may list.
func (r *request) explain(err error, ops []store.Op) error {
	var missing *store.MissingReferenceError
	var referenced *store.ReferencedError
	switch {
	case errors.As(err, &missing):
		return r.dangling(missing, ops)
	case errors.As(err, &referenced):
		return r.referenced(referenced)
	}
	return err
}

func (r *request) dangling(missing *store.MissingReferenceError, ops []store.Op) error {
	dangling := &danglingError{key: missing.Key}
	gone := map[store.Key]bool{}
	for _, key := range missing.Missing {
		gone[key] = true
	}
	for _, op := range ops {
		if op.Key != missing.Key || op.Kind != store.Put {
			continue
		}
		for _, reference := range localReferences(op.Key.Type, op.Body.JSON, r.bases()) {
			if gone[reference.to] {
				dangling.references = append(dangling.references, reference)
			}
		}
	}
	return dangling
}

// maxReferrers bounds how many records are named that refer to another.
const maxReferrers = 10

func (r *request) referenced(by *store.ReferencedError) error {
	var types []string
	for _, key := range by.By {
		if _, known := r4.TypeOf(key.Type); known && !slices.Contains(types, key.Type) {
			types = append(types, key.Type)
		}
	}
	listed, err := r.listed(types)
	if forbidden := new(access.ForbiddenError); err != nil && !errors.As(err, &forbidden) {
		return err
	}
	named := slices.DeleteFunc(slices.Clone(by.By), func(key store.Key) bool { return !slices.Contains(listed, key.Type) })
	named = named[:min(maxReferrers, len(named))]
	return &referencedError{key: by.Key, named: named, others: by.More || len(by.By) > len(named)}
}

// danglingError says that records are not there, or not for the caller to know of, that
// a resource refers to.
type danglingError struct {
	key        store.Key
	references []localReference
}

func (e *danglingError) Error() string {
	var wrong []string
	for _, issue := range e.issues() {
		wrong = append(wrong, issue.Diagnostics)
	}
	return strings.Join(wrong, "; ")
}

func (e *danglingError) issues() []r4.Issue {
	issues := make([]r4.Issue, 0, min(len(e.references), maxIssues))
	for _, reference := range e.references[:min(len(e.references), maxIssues)] {
		issues = append(issues, r4.Issue{
			Severity: r4.SeverityError, Type: issueNotFound, Code: codeReferenceNotFound, Expression: reference.Expression,
			Diagnostics: r4.Quote(reference.Reference) + " is no record of this site, or none that the caller may read; write a reference to one that is, or write that record first",
		})
	}
	return issues
}

// referencedError says that records refer to one that was to be deleted. Those that the
// caller may not list are others.
type referencedError struct {
	key    store.Key
	named  []store.Key
	others bool
}

func (e *referencedError) Error() string {
	var by []string
	for _, key := range e.named {
		by = append(by, key.Type+"/"+key.ID)
	}
	if e.others || len(by) == 0 {
		by = append(by, "others")
	}
	return e.key.Type + "/" + e.key.ID + " cannot be deleted: it is referred to by " + strings.Join(by, ", ") + "; change or delete what refers to it first"
}

// blame tells which entry of a transaction an error about references is of.
func blame(writings []*writing, err error) error {
	var dangling *danglingError
	var referenced *referencedError
	var key store.Key
	switch {
	case errors.As(err, &dangling):
		key = dangling.key
	case errors.As(err, &referenced):
		key = referenced.key
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
