package apply

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Finalizer adds a finalizer to an object, or removes it if want is false. It returns the new
// resourceVersion of the object. If the object no longer exists, it does nothing, and returns the old
// resourceVersion and no error.
func Finalizer(ctx context.Context, c client.Client, object client.Object, finalizer string, want bool) (resourceVersion string, err error) {
	changed, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return "", fmt.Errorf("copy %T: the copy is of another type", object)
	}
	if want {
		controllerutil.AddFinalizer(changed, finalizer)
	} else {
		controllerutil.RemoveFinalizer(changed, finalizer)
	}
	// A merge patch replaces the whole list, so the list must not have changed since it was read.
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, changed, patch, FieldOwner); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("patch the finalizers of %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return changed.GetResourceVersion(), nil
}
