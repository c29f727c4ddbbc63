package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Comparison reports whether a live object equals a configuration. Covers and Same are Comparisons.
type Comparison func(live client.Object, config *unstructured.Unstructured) (bool, error)

// Ensure applies an object, with AppliedAnnotation, unless the live object equals it according to same. It
// reads the live object with from. It takes over fields that other clients have set.
func Ensure(ctx context.Context, c client.Client, from client.Reader, object client.Object, same Comparison) error {
	config, err := Hashed(object)
	if err != nil {
		return err
	}
	live, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copy %T: the copy is of another type", object)
	}
	key := client.ObjectKeyFromObject(object)
	switch err := from.Get(ctx, key, live); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read %s %s: %w", config.GetKind(), key, err)
	default:
		if equal, err := same(live, config); equal || err != nil {
			return err
		}
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s %s: %w", config.GetKind(), key, err)
	}
	return nil
}

// Refusal returns the message of an error with which kube-apiserver refused a request as forbidden or
// invalid, and "" for other errors and nil. kube-apiserver will refuse the same request again until a
// right, a quota, a policy or the object changes.
func Refusal(err error) string {
	var status *apierrors.StatusError
	if (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && errors.As(err, &status) {
		return status.Error()
	}
	return ""
}
