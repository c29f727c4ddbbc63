// Package apply writes what controllers found out about an object: by server-side apply,
// with the uid and the version of what was read, so that nothing lands on a namesake or
// over newer findings. It also tells whether an object is as it would be applied, so that
// what is right already is not written.
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

// FieldOwner is the controller's name in managed fields.
const FieldOwner = client.FieldOwner("paddock-controller")

// ConflictDelay is the pause after a write was refused because the object had changed. The
// change itself wakes the controller; this only makes sure.
const ConflictDelay = time.Second

// Changed notes when the object's spec got its generation, where who wrote it did not. It
// reports whether it wrote: the object that was read is an old one then.
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
		return false, fmt.Errorf("note the time of a change: %w", err)
	}
	return true, nil
}

// Status writes the object's status. It is a pointer to a struct.
func Status(ctx context.Context, c client.Client, object client.Object, status any) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return fmt.Errorf("convert the status: %w", err)
	}
	config, err := configOf(c, object)
	if err != nil {
		return err
	}
	config.Object["status"] = fields
	if err := c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(config), FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply the status: %w", err)
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
