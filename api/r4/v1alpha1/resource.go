package v1alpha1

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Resource is a FHIR resource as a Kubernetes object. All kinds have this structure. T gives each kind
// a Go type of its own, because a runtime.Scheme finds the kind of an object by its Go type.
type Resource[T resourceType] struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the id in lower case as its name, and the version as its generation.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the FHIR resource without resourceType and id, which follow from kind and name. The
	// field holds JSON text, so that decimals keep their precision.
	Spec json.RawMessage `json:"spec"`
}

// List is a list of resources of one type.
type List[T resourceType] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Resource[T] `json:"items"`
}

// Object is a Resource of any resource type.
type Object interface {
	runtime.Object
	metav1.Object
	GetSpec() json.RawMessage
	SetSpec(spec json.RawMessage)
}

// GetSpec returns the spec, not a copy.
func (r *Resource[T]) GetSpec() json.RawMessage { return r.Spec }

// SetSpec sets the spec without copying it.
func (r *Resource[T]) SetSpec(spec json.RawMessage) { r.Spec = spec }

// DeepCopyInto copies r into out.
func (r *Resource[T]) DeepCopyInto(out *Resource[T]) {
	*out = *r
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec = slices.Clone(r.Spec)
}

// DeepCopyObject implements runtime.Object.
func (r *Resource[T]) DeepCopyObject() runtime.Object {
	out := new(Resource[T])
	r.DeepCopyInto(out)
	return out
}

// DeepCopyInto copies l into out.
func (l *List[T]) DeepCopyInto(out *List[T]) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = slices.Clone(l.Items)
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
}

// DeepCopyObject implements runtime.Object.
func (l *List[T]) DeepCopyObject() runtime.Object {
	out := new(List[T])
	l.DeepCopyInto(out)
	return out
}

// modelPrefix is the prefix of the OpenAPI names of the kinds: the reversed group and the version, as
// for custom resources.
const modelPrefix = "health.paddock.fhir.r4.v1alpha1."

// OpenAPIModelName returns the name of the kind's schema. The API machinery calls it.
func (Resource[T]) OpenAPIModelName() string { return modelPrefix + typeName[T]() }

// OpenAPIModelName returns the name of the list's schema.
func (List[T]) OpenAPIModelName() string { return modelPrefix + typeName[T]() + "List" }
