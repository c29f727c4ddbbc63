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

// restManager is the field manager of writes through all other APIs.
const restManager = "paddock-rest"

// newFieldManager returns the library's manager of field ownership for a kind, with the schemas of
// server-side apply.
func newFieldManager(scheme *runtime.Scheme, types managedfields.TypeConverter, kind r4v1.Kind) (*managedfields.FieldManager, error) {
	version := r4v1.GroupVersion.WithKind(kind.Name)
	internal := r4v1.GroupVersion
	internal.Version = runtime.APIVersionInternal
	return managedfields.NewDefaultFieldManager(types, runtime.UnsafeObjectConvertor(scheme), scheme, scheme, version, internal, "", nil)
}

// owned returns the object of a record to be written, with an owner for every field. restManager
// owns fields that were not written through this API.
func (w *mutation) owned(ctx context.Context, record store.Record) (r4v1.Object, error) {
	object, err := w.object(ctx, w.site.Store, record)
	if err != nil || len(object.GetManagedFields()) > 0 {
		return object, err
	}
	return w.claim(ctx, w.kind.New(), object, record), nil
}

// attribute updates the managed fields of an object whose record another API has written since the
// managed fields were stored: restManager owns the changed fields. If the version at that time is
// no longer stored, or is hidden from the caller, restManager owns all of the spec, so that no
// apply removes fields that other clients may need.
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

// claim makes restManager the owner of the fields that differ between before and object. If the
// owners cannot be computed, claim logs the error and returns object.
func (r *resource) claim(ctx context.Context, before, object r4v1.Object, record store.Record) r4v1.Object {
	updated, err := r.fields.Update(before, object.DeepCopyObject(), restManager)
	if err != nil {
		slog.WarnContext(ctx, "cannot compute the owners of the fields of an object", "namespace", object.GetNamespace(), "resource", r.kind.Plural, "id", record.Key.ID, "error", err)
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
