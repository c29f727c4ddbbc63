package v1alpha1

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Resource is a FHIR resource as an object. All kinds have this shape. T is there
// because a runtime.Scheme finds the kind of an object by its Go type: it makes a
// type for each kind out of one.
type Resource[T resourceType] struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the id in lower case as name, the version as generation.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the FHIR resource, without resourceType and id: those follow from
	// kind and name. It stays JSON, so that decimals keep their digits.
	Spec json.RawMessage `json:"spec"`
}

// List is a list of resources of one type.
type List[T resourceType] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Resource[T] `json:"items"`
}

// Object is a Resource of any type.
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

// modelPrefix starts the names of the kinds in OpenAPI: the group and version,
// turned around, as for custom resources.
const modelPrefix = "health.paddock.fhir.r4.v1alpha1."

// OpenAPIModelName is the name of the kind's schema. The API machinery asks for it
// by this method.
func (Resource[T]) OpenAPIModelName() string { return modelPrefix + typeName[T]() }

// OpenAPIModelName is the name of the list's schema.
func (List[T]) OpenAPIModelName() string { return modelPrefix + typeName[T]() + "List" }
