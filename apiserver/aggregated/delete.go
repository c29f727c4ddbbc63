package aggregated

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Delete implements rest.GracefulDeleter. It deletes immediately, because records have no
// dependents for the garbage collector.
func (r *resource) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	w, err := r.begin(ctx, options.DryRun)
	if err != nil {
		return nil, false, r.status(ctx, err, name)
	}
	for attempt := 1; ; attempt++ {
		uid, err := w.remove(ctx, name, validate, options.Preconditions)
		var status apierrors.APIStatus
		switch {
		case err == nil:
			// The response is not the object, because the right to delete does not include reading it.
			deleted := &metav1.StatusDetails{Name: name, Group: r.groupResource().Group, Kind: r.groupResource().Resource, UID: uid}
			return &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusOK, Details: deleted}, true, nil
		case store.IsConflict(err) && attempt < maxAttempts:
			continue
		case store.IsConflict(err):
			return nil, false, apierrors.NewConflict(r.groupResource(), name, errors.New("the object was modified by concurrent requests; please try again"))
		case errors.As(err, &status):
			return nil, false, err
		default:
			return nil, false, r.writeStatus(ctx, err, name)
		}
	}
}

// remove reads and deletes a record, and returns its uid. It returns a conflict if the record
// changes in between.
func (w *mutation) remove(ctx context.Context, name string, validate rest.ValidateObjectFunc, wanted *metav1.Preconditions) (types.UID, error) {
	record, err := w.current(ctx, name)
	if err != nil {
		return "", err
	}
	current, err := w.object(ctx, w.site.Store, record)
	if err != nil {
		return "", err
	}
	if err := w.check(current, wanted); err != nil {
		return "", err
	}
	if validate != nil {
		if err := validate(ctx, current.DeepCopyObject()); err != nil {
			return "", err
		}
	}
	_, err = w.write(ctx, store.Op{
		Kind: store.Delete, Key: record.Key, Method: store.MethodDelete,
		If: store.Precondition{Present: true, UID: record.UID, Revision: record.Revision},
	})
	return types.UID(record.UID), err
}
