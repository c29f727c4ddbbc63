// Package integrity keeps the references between the records of a site in step: what is
// referred to is there, and nothing refers to what is removed. It is the last step of
// every write of FHIR resources, through whichever API.
package integrity

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Writer writes for one caller to one site that enforces references.
type Writer struct {
	Store      store.Store
	Authorizer access.Authorizer
	Caller     access.Caller
	Site       access.Site
	// Bases are the addresses of the site: what refers there refers to its records.
	Bases []string
}

// Reference is a literal reference to a record that this site can have.
type Reference struct {
	r4.Literal
	To store.Key
}

// localReferences lists the literal references of what an operation stores, as far as
// they are to records of this site: relative, or below one of its addresses. That a
// reference is to a version asks for the record only. R4 references.html#literal.
func localReferences(recordType string, body []byte, bases []string) []Reference {
	var found []Reference
	for _, literal := range r4.Literals(body, recordType) {
		base, typeName, id, ok := r4.SplitAddress(literal.Reference)
		if ok && (base == "" || slices.Contains(bases, base)) {
			found = append(found, Reference{literal, folded(store.Key{Type: typeName, ID: id})})
		}
	}
	return found
}

// folded is a key as records are told apart by it.
func folded(key store.Key) store.Key {
	return store.Key{Type: key.Type, ID: strings.ToLower(key.ID)}
}

// Write writes operations, only if what is referred to is there and nothing refers to what
// is removed.
// Errors: *DanglingError and *ReferencedError, and those of the store.
func (w *Writer) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	guarded, err := w.guarded(ctx, ops)
	if err != nil {
		return nil, err
	}
	results, err := w.Store.Write(ctx, guarded)
	return results, w.explain(ctx, err, ops)
}

// Check tells what Write would say of references, without writing. What refers to a record
// that is to be removed it does not look for.
func (w *Writer) Check(ctx context.Context, op store.Op) error {
	guarded, err := w.guarded(ctx, []store.Op{op})
	if err != nil {
		return err
	}
	missing := &store.MissingReferenceError{Key: op.Key}
	for _, key := range guarded[0].Requires {
		if key == folded(op.Key) {
			continue
		}
		_, err := w.Store.Get(ctx, key)
		if isAbsent(err) {
			missing.Missing = append(missing.Missing, key)
		} else if err != nil {
			return err
		}
	}
	if len(missing.Missing) == 0 {
		return nil
	}
	return w.explain(ctx, missing, []store.Op{op})
}

// guarded makes operations depend on the records that they refer to, or that refer to theirs.
func (w *Writer) guarded(ctx context.Context, ops []store.Op) ([]store.Op, error) {
	guarded := slices.Clone(ops)
	put := map[store.Key]bool{}
	for _, op := range ops {
		put[folded(op.Key)] = op.Kind == store.Put
	}
	for i := range guarded {
		if err := w.guard(ctx, &guarded[i], put); err != nil {
			return nil, err
		}
	}
	return guarded, nil
}

// guard makes an operation depend on the records that it refers to, or that refer to it.
func (w *Writer) guard(ctx context.Context, op *store.Op, put map[store.Key]bool) error {
	if op.Kind != store.Put {
		op.Unreferenced, op.Bases = true, w.Bases
		return nil
	}
	references := localReferences(op.Key.Type, op.Body.JSON, w.Bases)
	hidden, err := w.hidden(ctx, references, put)
	if err == nil && len(hidden) > 0 {
		hidden, err = w.without(ctx, hidden, op.Key)
	}
	switch {
	case err != nil:
		return err
	case len(hidden) > 0:
		return &DanglingError{op.Key, hidden}
	}
	seen := map[store.Key]bool{}
	for _, reference := range references {
		if !seen[reference.To] {
			seen[reference.To] = true
			op.Requires = append(op.Requires, reference.To)
		}
	}
	return nil
}

// hidden are the references to records that the caller may not read, beside those put:
// the first ones, where there are more than are told of. They count as missing, so that
// nobody can find out by references what is there.
func (w *Writer) hidden(ctx context.Context, references []Reference, put map[store.Key]bool) ([]Reference, error) {
	var hidden []Reference
	for _, reference := range references {
		if put[reference.To] || len(hidden) == mostTold {
			continue
		}
		readable, err := w.mayRead(ctx, reference.To)
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
func (w *Writer) mayRead(ctx context.Context, key store.Key) (bool, error) {
	kind, _ := r4.TypeOf(key.Type)
	for _, action := range []access.Action{{Verb: "list"}, {Verb: "get"}, {Verb: "get", Name: strings.ToLower(key.ID)}} {
		action.Group, action.Resource = r4.Group, kind.Resource
		err := w.Authorizer.Authorize(ctx, w.Caller, w.Site, action)
		if !isRefusal(err) {
			return err == nil, err
		}
	}
	return false, nil
}

// without leaves out the references that the record has already, if the caller may read
// it: an update need not drop what others wrote.
func (w *Writer) without(ctx context.Context, references []Reference, key store.Key) ([]Reference, error) {
	if readable, err := w.mayRead(ctx, key); err != nil || !readable {
		return references, err
	}
	current, err := w.Store.Get(ctx, key)
	if isAbsent(err) {
		return references, nil
	}
	if err != nil {
		return nil, err
	}
	there := map[store.Key]bool{}
	for _, reference := range localReferences(key.Type, current.Body.JSON, w.Bases) {
		there[reference.To] = true
	}
	return slices.DeleteFunc(references, func(reference Reference) bool { return there[reference.To] }), nil
}

// explain tells which elements refer to what is not there, and of what refers to a record
// only that which the caller may list.
func (w *Writer) explain(ctx context.Context, err error, ops []store.Op) error {
	var missing *store.MissingReferenceError
	var referenced *store.ReferencedError
	switch {
	case errors.As(err, &missing):
		return w.dangling(missing, ops)
	case errors.As(err, &referenced):
		return w.referenced(ctx, referenced)
	}
	return err
}

func (w *Writer) dangling(missing *store.MissingReferenceError, ops []store.Op) error {
	dangling := &DanglingError{Key: missing.Key}
	gone := map[store.Key]bool{}
	for _, key := range missing.Missing {
		gone[key] = true
	}
	for _, op := range ops {
		if op.Key != missing.Key || op.Kind != store.Put {
			continue
		}
		for _, reference := range localReferences(op.Key.Type, op.Body.JSON, w.Bases) {
			if gone[reference.To] {
				dangling.References = append(dangling.References, reference)
			}
		}
	}
	return dangling
}

// mostTold bounds how many references are told of.
const mostTold = 50

// maxReferrers bounds how many records are named that refer to another.
const maxReferrers = 10

func (w *Writer) referenced(ctx context.Context, by *store.ReferencedError) error {
	var types []string
	for _, key := range by.By {
		if _, known := r4.TypeOf(key.Type); known && !slices.Contains(types, key.Type) {
			types = append(types, key.Type)
		}
	}
	listed, err := w.listed(ctx, types)
	if err != nil {
		return err
	}
	named := slices.DeleteFunc(slices.Clone(by.By), func(key store.Key) bool { return !slices.Contains(listed, key.Type) })
	named = named[:min(maxReferrers, len(named))]
	return &ReferencedError{Key: by.Key, named: named, others: by.More || len(by.By) > len(named)}
}

// listed are those of the types that the caller may list.
func (w *Writer) listed(ctx context.Context, typeNames []string) ([]string, error) {
	var listed []string
	for _, typeName := range typeNames {
		kind, _ := r4.TypeOf(typeName)
		err := w.Authorizer.Authorize(ctx, w.Caller, w.Site, access.Action{Verb: "list", Group: r4.Group, Resource: kind.Resource})
		if isRefusal(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		listed = append(listed, typeName)
	}
	return listed, nil
}

// isRefusal reports whether the caller has no such right, or none at all that shows.
func isRefusal(err error) bool {
	var forbidden *access.ForbiddenError
	return errors.As(err, &forbidden) || errors.Is(err, access.ErrSiteHidden)
}

func isAbsent(err error) bool {
	var deleted *store.DeletedError
	return errors.Is(err, store.ErrNotFound) || errors.As(err, &deleted)
}

// DanglingError says that records are not there, or not for the caller to know of, that
// a resource refers to.
type DanglingError struct {
	Key        store.Key
	References []Reference
}

func (e *DanglingError) Error() string {
	var wrong []string
	for _, reference := range e.References {
		wrong = append(wrong, reference.Problem())
	}
	return strings.Join(wrong, "; ")
}

// Problem says what is wrong with a reference to what is not there.
func (r Reference) Problem() string {
	return r4.Quote(r.Reference) + " is no record of this site, or none that the caller may read; write a reference to one that is, or write that record first"
}

// ReferencedError says that records refer to one that was to be deleted. Those that the
// caller may not list are others.
type ReferencedError struct {
	Key    store.Key
	named  []store.Key
	others bool
}

func (e *ReferencedError) Error() string {
	var by []string
	for _, key := range e.named {
		by = append(by, key.Type+"/"+key.ID)
	}
	if e.others || len(by) == 0 {
		by = append(by, "others")
	}
	return e.Key.Type + "/" + e.Key.ID + " cannot be deleted: it is referred to by " + strings.Join(by, ", ") + "; change or delete what refers to it first"
}
