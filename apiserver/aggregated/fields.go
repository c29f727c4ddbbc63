package aggregated

import (
	"context"
	"errors"
	"log/slog"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// restManager is the field manager that writes through all other APIs count as.
const restManager = "paddock-rest"

// newFieldManager makes what works out the owners of fields, by the schemas that
// server-side apply goes by.
func newFieldManager(scheme *runtime.Scheme, types managedfields.TypeConverter, kind r4v1.Kind) (*managedfields.FieldManager, error) {
	version := r4v1.GroupVersion.WithKind(kind.Name)
	internal := r4v1.GroupVersion
	internal.Version = runtime.APIVersionInternal
	return managedfields.NewDefaultFieldManager(types, runtime.UnsafeObjectConvertor(scheme), scheme, scheme, version, internal, "", nil)
}

// owned makes the object of a record that is about to be written: with an owner for every
// field. What nobody wrote by this API is REST's.
func (w *writing) owned(ctx context.Context, record store.Record) (r4v1.Object, error) {
	object, err := w.object(ctx, w.site.Store, record)
	if err != nil || len(object.GetManagedFields()) > 0 {
		return object, err
	}
	return w.claim(ctx, w.kind.New(), object, record), nil
}

// attribute brings managed fields up to date of an object whose record REST has written
// since they were: what has changed is REST's. Where the version is not kept that they
// were true of, all of its spec is REST's,
// so that no apply takes away what others may want.
func (r *resource) attribute(ctx context.Context, records store.Store, object r4v1.Object, record store.Record) (r4v1.Object, error) {
	before := object.DeepCopyObject().(r4v1.Object)
	before.SetSpec([]byte(`{}`))
	old, err := records.GetVersion(ctx, record.Key, record.MetadataVersion)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return nil, err
	case !old.Deleted && old.UID == record.UID:
		spec, err := specOf(old.Body.JSON)
		if err != nil {
			return nil, err
		}
		before.SetSpec(spec)
	}
	return r.claim(ctx, before, object, record), nil
}

// claim gives the fields to REST in which an object differs from what it was before.
func (r *resource) claim(ctx context.Context, before, object r4v1.Object, record store.Record) r4v1.Object {
	updated, err := r.fields.Update(before, object.DeepCopyObject(), restManager)
	if err != nil {
		slog.WarnContext(ctx, "the owners of fields cannot be worked out", "resource", r.kind.Plural, "id", record.Key.ID, "error", err)
		return object
	}
	claimed := updated.(r4v1.Object)
	entries := claimed.GetManagedFields()
	for i := range entries {
		if entries[i].Manager == restManager {
			at := metav1.NewTime(record.Updated)
			entries[i].Time = &at
		}
	}
	claimed.SetManagedFields(entries)
	return claimed
}
