// Package apply writes status, annotations, finalizers and objects. Status, Changed and Finalizer write
// with the resourceVersion of the object that was read, so they fail with a conflict if the object was
// replaced or changed. Ensure has no such precondition: it takes over the fields that it applies. It
// compares live objects with their configuration, so that unchanged objects are not written.
package apply

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// FieldOwner is the controller's field manager.
const FieldOwner = client.FieldOwner("paddock-controller")

// ConflictDelay is the delay of the next reconcile after a conflict. Normally the change that
// caused the conflict triggers a reconcile earlier.
const ConflictDelay = time.Second

// Changed sets v1alpha1.ChangedAnnotation of an object if the writer of the current spec did not set
// it. wrote reports whether Changed set the annotation; object is then out of date.
func Changed(ctx context.Context, c client.Client, object client.Object) (wrote bool, err error) {
	at, recorded := v1alpha1.ChangedAt(object)
	if recorded {
		return false, nil
	}
	config, err := configOf(c, object)
	if err != nil {
		return false, err
	}
	config.SetAnnotations(map[string]string{v1alpha1.ChangedAnnotation: v1alpha1.Changed(object.GetGeneration(), at)})
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), FieldOwner, client.ForceOwnership); err != nil {
		return false, fmt.Errorf("apply the annotation %s of %s %s: %w", v1alpha1.ChangedAnnotation, config.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	return true, nil
}

// Status writes the status of an object by server-side apply. status is a pointer to a struct.
func Status(ctx context.Context, c client.Client, object client.Object, status any) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return fmt.Errorf("convert the status of %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	config, err := configOf(c, object)
	if err != nil {
		return err
	}
	config.Object["status"] = fields
	if err := c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(config), FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply the status of %s %s: %w", config.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	return nil
}

func configOf(c client.Client, object client.Object) (*unstructured.Unstructured, error) {
	kind, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return nil, err
	}
	config := &unstructured.Unstructured{Object: map[string]any{}}
	config.SetGroupVersionKind(kind)
	config.SetNamespace(object.GetNamespace())
	config.SetName(object.GetName())
	config.SetUID(object.GetUID())
	config.SetResourceVersion(object.GetResourceVersion())
	return config, nil
}
