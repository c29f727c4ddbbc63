// Package integrity enforces the integrity of references between the records of a site: referenced
// records exist, and deleted records are not referenced. At a site that enforces it, each API passes
// its writes of FHIR resources through this package.
package integrity

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Writer writes the records of a site that enforces referential integrity, on behalf of one caller.
type Writer struct {
	Store      store.Restricted
	Authorizer access.Authorizer
	Caller     access.Caller
	Site       access.Tenant
	// Bases are the addresses of the site. A reference below one of them is treated as the relative
	// reference to the same record.
	Bases []string
}

// Reference is a literal reference to a record of this site. The record need not exist.
type Reference struct {
	r4.Literal
	// To is the key of the record, with the id in lower case.
	To store.Key
}

// localReferences returns the literal references in a body to records of this site: those that are
// relative or below one of its addresses. A reference to a version counts as one to the record. R4
// references.html#literal.
func localReferences(recordType string, body []byte, bases []string) []Reference {
	var found []Reference
	for _, literal := range r4.Literals(body, recordType) {
		base, typeName, id, ok := r4.SplitAddress(literal.Reference)
		if ok && (base == "" || slices.Contains(bases, base)) {
			found = append(found, Reference{literal, store.Key{Type: typeName, ID: id}.Folded()})
		}
	}
	return found
}

// Write writes all of the operations or none. It fails if an operation refers to a record that does
// not exist or that the caller may not read, or deletes a record to which another one refers. A
// record that one of the operations writes counts as existing and readable. If the caller may read
// the stored version of a record, an update may keep the references of that version, even those to
// records that the caller may not read. Errors: *DanglingError, *ReferencedError, those of the
// store, and those of Authorizer except *access.ForbiddenError.
func (w *Writer) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	prepared, err := w.addPreconditions(ctx, ops)
	if err != nil {
		return nil, err
	}
	results, err := w.Store.Write(ctx, prepared)
	return results, w.convertError(ctx, err, ops)
}

// Check returns the error that Write would return for the references in the body of op, without
// writing. It does not check whether records refer to a record that op deletes. Errors:
// *DanglingError, those of the store, and those of Authorizer except *access.ForbiddenError.
func (w *Writer) Check(ctx context.Context, op store.Op) error {
	prepared, err := w.addPreconditions(ctx, []store.Op{op})
	if err != nil {
		return err
	}
	missing := &store.MissingReferenceError{Key: op.Key}
	for _, key := range prepared[0].Requires {
		if key == op.Key.Folded() {
			continue
		}
		var err error
		unseen := slices.Contains(prepared[0].Unseen, key)
		if !unseen {
			_, err = w.Store.Get(ctx, key)
		}
		if unseen || store.IsAbsent(err) {
			missing.Missing = append(missing.Missing, key)
		} else if err != nil {
			return err
		}
	}
	if len(missing.Missing) == 0 {
		return nil
	}
	return w.convertError(ctx, missing, []store.Op{op})
}

// addPreconditions returns the operations with preconditions on the records to which they refer, or
// that refer to the records that they delete.
func (w *Writer) addPreconditions(ctx context.Context, ops []store.Op) ([]store.Op, error) {
	prepared := slices.Clone(ops)
	put := map[store.Key]bool{}
	for _, op := range ops {
		put[op.Key.Folded()] = op.Kind == store.Put
	}
	for i := range prepared {
		if err := w.prepare(ctx, &prepared[i], put); err != nil {
			return nil, err
		}
	}
	return prepared, nil
}

// prepare adds the preconditions of addPreconditions to one operation. put has true for each record
// that an operation writes, and false for each that one deletes.
func (w *Writer) prepare(ctx context.Context, op *store.Op, put map[store.Key]bool) error {
	if op.Kind != store.Put {
		op.Unreferenced, op.Bases = true, w.Bases
		return nil
	}
	references := localReferences(op.Key.Type, op.Body.JSON, w.Bases)
	targets := make([]store.Key, 0, len(references))
	seen := map[store.Key]bool{}
	for _, reference := range references {
		if !seen[reference.To] {
			seen[reference.To] = true
			targets = append(targets, reference.To)
		}
	}
	hidden, err := w.hiddenTargets(ctx, op.Key, targets, put)
	op.Requires, op.Unseen = targets, slices.Collect(maps.Keys(hidden))
	return err
}

// hiddenTargets returns the keys whose records the caller may not read, except those that an operation
// puts and those to which the stored version of the record already refers. References to the returned
// keys are errors, as if the records were missing, so that they do not reveal which records exist.
// After maxDangling hidden keys, it does not look up further rights, because a DanglingError does not
// have more references.
func (w *Writer) hiddenTargets(ctx context.Context, of store.Key, keys []store.Key, put map[store.Key]bool) (map[store.Key]bool, error) {
	hidden := map[store.Key]bool{}
	var existing map[store.Key]bool // read for the first hidden key, because most writes have none
	hide := func(key store.Key) (err error) {
		if existing == nil {
			existing, err = w.existingTargets(ctx, of)
		}
		if err == nil && !existing[key] {
			hidden[key] = true
		}
		return err
	}
	var readable []store.Key
	for _, key := range keys {
		if put[key] || existing[key] || len(hidden) == maxDangling {
			continue
		}
		reads, err := w.canRead(ctx, key)
		switch {
		case err == nil && reads:
			readable = append(readable, key)
		case err == nil:
			err = hide(key)
		}
		if err != nil {
			return nil, err
		}
	}
	unseen, err := w.Store.Hidden(ctx, readable)
	if err != nil {
		return nil, err
	}
	for _, key := range unseen {
		if err := hide(key); err != nil {
			return nil, err
		}
	}
	return hidden, nil
}

// canRead reports whether any right lets the caller read a record. It does not consider privacy rules;
// Store.Hidden does. The right to all records of the type is checked first, because it is the most
// likely one and the same for all records of the type.
func (w *Writer) canRead(ctx context.Context, key store.Key) (bool, error) {
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

// existingTargets returns the keys to which the stored version of a record refers, if the caller may
// read that record, otherwise none. An update need not drop references that another caller wrote.
func (w *Writer) existingTargets(ctx context.Context, key store.Key) (map[store.Key]bool, error) {
	existing := map[store.Key]bool{}
	if readable, err := w.canRead(ctx, key); err != nil || !readable {
		return existing, err
	}
	current, err := w.Store.Get(ctx, key)
	if store.IsAbsent(err) {
		return existing, nil
	}
	if err != nil {
		return nil, err
	}
	for _, reference := range localReferences(key.Type, current.Body.JSON, w.Bases) {
		existing[reference.To] = true
	}
	return existing, nil
}

// convertError converts an error of the store about references. The result names the elements with
// the references, and only records that the caller may list.
func (w *Writer) convertError(ctx context.Context, err error, ops []store.Op) error {
	var missing *store.MissingReferenceError
	var referenced *store.ReferencedError
	switch {
	case errors.As(err, &missing):
		return w.danglingError(missing, ops)
	case errors.As(err, &referenced):
		return w.referencedError(ctx, referenced)
	}
	return err
}

func (w *Writer) danglingError(missing *store.MissingReferenceError, ops []store.Op) error {
	dangling := &DanglingError{Key: missing.Key}
	missingKeys := map[store.Key]bool{}
	for _, key := range missing.Missing {
		missingKeys[key] = true
	}
	for _, op := range ops {
		if op.Key != missing.Key || op.Kind != store.Put {
			continue
		}
		for _, reference := range localReferences(op.Key.Type, op.Body.JSON, w.Bases) {
			if missingKeys[reference.To] && len(dangling.References) < maxDangling {
				dangling.References = append(dangling.References, reference)
			}
		}
	}
	return dangling
}

// maxDangling is the maximum number of references in a DanglingError, and of hidden records that
// hiddenTargets looks for. Further references are left out.
const maxDangling = 50

// maxReferrers is the maximum number of referring records that a ReferencedError names.
const maxReferrers = 10

func (w *Writer) referencedError(ctx context.Context, by *store.ReferencedError) error {
	var types []string
	for _, key := range by.By {
		if _, known := r4.TypeOf(key.Type); known && !slices.Contains(types, key.Type) {
			types = append(types, key.Type)
		}
	}
	listed, err := w.listableTypes(ctx, types)
	if err != nil {
		return err
	}
	named := slices.DeleteFunc(slices.Clone(by.By), func(key store.Key) bool { return !slices.Contains(listed, key.Type) })
	named = named[:min(maxReferrers, len(named))]
	return &ReferencedError{Key: by.Key, named: named, others: by.More || len(by.By) > len(named)}
}

// listableTypes returns those of the types that the caller may list.
func (w *Writer) listableTypes(ctx context.Context, typeNames []string) ([]string, error) {
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

func isRefusal(err error) bool {
	var forbidden *access.ForbiddenError
	return errors.As(err, &forbidden)
}

// DanglingError is the error of a resource with references to records that do not exist or that the
// caller may not read.
type DanglingError struct {
	// Key is the key of the resource.
	Key store.Key
	// References are these references, at most maxDangling.
	References []Reference
}

func (e *DanglingError) Error() string {
	var wrong []string
	for _, reference := range e.References {
		wrong = append(wrong, reference.Problem())
	}
	return strings.Join(wrong, "; ")
}

// Problem returns the message about a reference to a record that does not exist or is hidden.
func (r Reference) Problem() string {
	return r4.Quote(r.Reference) + " does not exist, or the caller may not read it; refer to another record, or write that record first"
}

// ReferencedError is the error of a deletion of a record to which other records refer. named are at
// most maxReferrers of these records. others is true if some of them are not named, because the
// caller may not list them or they are too many.
type ReferencedError struct {
	// Key is the key of the record that was to be deleted.
	Key    store.Key
	named  []store.Key
	others bool
}

func (e *ReferencedError) Error() string {
	var named []string
	for _, key := range e.named {
		named = append(named, key.Type+"/"+key.ID)
	}
	by := strings.Join(named, ", ")
	switch {
	case by == "":
		by = "other records"
	case e.others:
		by += " and other records"
	}
	return e.Key.Type + "/" + e.Key.ID + " cannot be deleted, because it is referenced by " + by + "; change or delete the referring records first"
}
