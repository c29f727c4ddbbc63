package site

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/controllers/apply"
)

// ensure applies an object unless it is unchanged. If the verdict is not nil, it says why
// kube-apiserver rejected the object.
func (r *Reconciler) ensure(ctx context.Context, from client.Reader, object client.Object, same apply.Comparison) (*verdict, error) {
	err := apply.Ensure(ctx, r.Client, from, object, same)
	refusal := apply.Refusal(err)
	if refusal == "" {
		return nil, err
	}
	kind, err := apiutil.GVKForObject(object, r.Client.Scheme())
	if err != nil {
		return nil, err
	}
	return &verdict{metav1.ConditionFalse, v1alpha1.ReasonRefused, fmt.Sprintf(
		"kube-apiserver rejected %s %s: %s", kind.Kind, object.GetName(), refusal)}, nil
}
