package aggregated

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Update implements rest.Updater and, with Get, rest.Patcher. info computes the new object from the
// stored object. If there is none, Update creates the object if forceCreate is set, as for a
// server-side apply.
func (r *resource) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, validateCreate rest.ValidateObjectFunc,
	validate rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	w, err := r.begin(ctx, options.DryRun)
	if errors.Is(err, ErrNoSite) && forceCreate {
		if _, err := compute(ctx, info, r.kind.New()); err != nil { // info runs admission, which refuses a namespace that does not exist
			return nil, false, err
		}
		return nil, false, noSite(request.NamespaceValue(ctx), r.kind.Plural)
	}
	if err != nil {
		return nil, false, r.status(ctx, err, name)
	}
	for attempt := 1; ; attempt++ {
		var object runtime.Object
		var created bool
		record, err := w.current(ctx, name)
		switch {
		case err == nil:
			object, err = w.update(ctx, record, info, validate)
		case store.IsAbsent(err) && forceCreate:
			object, err = w.apply(ctx, name, info, validateCreate)
			created = true
		}
		var status apierrors.APIStatus
		switch met := store.IsConflict(err) || created && apierrors.IsAlreadyExists(err); {
		case err == nil:
			return object, created, nil
		case met && attempt < maxAttempts:
			continue
		case met:
			return nil, false, apierrors.NewConflict(r.groupResource(), name, errors.New("the object was modified by concurrent requests; please try again"))
		case errors.As(err, &status):
			return nil, false, err
		default:
			return nil, false, r.writeStatus(ctx, err, name)
		}
	}
}

// checkPatcher returns an error for a patch by a caller without the right to get the object. The
// response, the errors and the warnings of a patch have values of the object, and the operation
// test of a JSON patch compares them. Errors: *access.ForbiddenError, access.ErrUnavailable.
func (w *mutation) checkPatcher(ctx context.Context, name string) error {
	if w.method != store.MethodPatch {
		return nil
	}
	return w.authorizer.Authorize(ctx, w.caller, w.site.Access,
		access.Action{Verb: "get", Group: w.groupResource().Group, Resource: w.kind.Plural, Name: name})
}

// current returns the record of the object with a name.
func (w *mutation) current(ctx context.Context, name string) (store.Record, error) {
	if !isName(name) {
		return store.Record{}, store.ErrNotFound
	}
	return w.site.Store.Get(ctx, store.Key{Type: w.kind.Name, ID: name})
}

// update validates and writes the new object for a record that must not have changed since it was
// read.
func (w *mutation) update(ctx context.Context, record store.Record, info rest.UpdatedObjectInfo, validate rest.ValidateObjectUpdateFunc) (runtime.Object, error) {
	if err := w.checkPatcher(ctx, strings.ToLower(record.Key.ID)); err != nil {
		return nil, err
	}
	current, err := w.owned(ctx, record)
	if err != nil {
		return nil, err
	}
	if err := w.check(current, info.Preconditions()); err != nil {
		return nil, err
	}
	sent, err := compute(ctx, info, current.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	if wanted := sent.GetResourceVersion(); wanted != "" && wanted != current.GetResourceVersion() {
		return nil, apierrors.NewConflict(w.groupResource(), current.GetName(), errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	sent.SetResourceVersion(current.GetResourceVersion())
	checked := &strategy{ObjectTyper: w.scheme, NameGenerator: names.SimpleNameGenerator, kind: w.kind, bases: w.site.Bases, current: &record}
	if err := rest.BeforeUpdate(checked, ctx, sent, current); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, sent.DeepCopyObject(), current.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	op, err := w.put(sent, checked)
	if err != nil {
		return nil, err
	}
	op.Key = record.Key
	op.If = store.Precondition{Present: true, UID: record.UID, Revision: record.Revision}
	written, err := w.write(ctx, op)
	if err != nil {
		return nil, err
	}
	if w.isDryRun {
		if !checked.body.SameValue(record.Body) {
			sent.SetGeneration(record.Version + 1)
		}
		return sent, nil
	}
	return w.object(ctx, w.site.Store, written)
}

// compute returns the new object that a request makes of the stored object. The library returns an
// error without a status for an apply that does not fit the schema. compute converts this error to
// a 400. As a 500, the error would be logged with the values that were sent.
func compute(ctx context.Context, info rest.UpdatedObjectInfo, stored runtime.Object) (r4v1.Object, error) {
	updated, err := info.UpdatedObject(ctx, stored)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return updated.(r4v1.Object), nil
	case errors.As(err, &status):
		return nil, err
	default:
		return nil, apierrors.NewBadRequest(err.Error())
	}
}

// apply creates the object of a server-side apply.
func (w *mutation) apply(ctx context.Context, name string, info rest.UpdatedObjectInfo, validate rest.ValidateObjectFunc) (runtime.Object, error) {
	sent, err := compute(ctx, info, w.kind.New())
	if err != nil {
		return nil, err
	}
	if sent.GetResourceVersion() != "" {
		return nil, apierrors.NewConflict(w.groupResource(), name, errors.New("the object does not exist, but metadata.resourceVersion is set; remove the field to create the object"))
	}
	return w.create(ctx, sent, false, validate)
}

// check returns a conflict unless an object meets the preconditions of a request.
func (w *mutation) check(current r4v1.Object, wanted *metav1.Preconditions) error {
	switch {
	case wanted == nil:
		return nil
	case wanted.UID != nil && *wanted.UID != current.GetUID():
		return w.unmet(current, "UID", string(*wanted.UID), string(current.GetUID()))
	case wanted.ResourceVersion != nil && *wanted.ResourceVersion != current.GetResourceVersion():
		return w.unmet(current, "ResourceVersion", *wanted.ResourceVersion, current.GetResourceVersion())
	default:
		return nil
	}
}

func (w *mutation) unmet(current r4v1.Object, what, wanted, is string) error {
	return apierrors.NewConflict(w.groupResource(), current.GetName(), fmt.Errorf("precondition failed: %s in precondition: %s, %s in object meta: %s", what, wanted, what, is))
}
