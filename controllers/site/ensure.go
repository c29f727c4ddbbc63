package site

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// asIs is a function that reports whether a live object equals the configuration to apply, such as
// apply.Covers.
type asIs func(live client.Object, config *unstructured.Unstructured) (bool, error)

// ensure applies an object unless it is unchanged. If the verdict is not nil, it says why
// kube-apiserver rejected the object.
func (r *Reconciler) ensure(ctx context.Context, from client.Reader, object client.Object, same asIs) (*verdict, error) {
	config, err := apply.Hashed(object)
	if err != nil {
		return nil, err
	}
	if current, err := current(ctx, from, object); err != nil {
		return nil, err
	} else if current != nil {
		if same, err := same(current, config); same || err != nil {
			return nil, err
		}
	}
	err = r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), apply.FieldOwner, client.ForceOwnership)
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		return &verdict{metav1.ConditionFalse, v1alpha1.ReasonRefused, fmt.Sprintf(
			"kube-apiserver rejected %s %s: %s", config.GetKind(), object.GetName(), err)}, nil
	case err != nil:
		return nil, fmt.Errorf("apply %s %s: %w", config.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	return nil, nil
}

// current returns the live object, or nil if there is none.
func current(ctx context.Context, from client.Reader, object client.Object) (client.Object, error) {
	now, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("copy %T: the copy is of another type", object)
	}
	if there, err := findInto(ctx, from, client.ObjectKeyFromObject(object), now); !there {
		return nil, err
	}
	return now, nil
}
