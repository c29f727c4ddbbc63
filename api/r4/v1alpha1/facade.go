package v1alpha1

import (
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// FacadeResource is the resource whose subresources lead to the other APIs of a site.
const FacadeResource = "facades"

// Facade stands for the other APIs of a site, and has its name. Its subresources, fhir and
// ahds, serve them to whoever the cluster knows.
type Facade struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// FacadeOptions say what is asked for of a subresource.
type FacadeOptions struct {
	metav1.TypeMeta `json:",inline"`

	// path is that below the API's own, such as /patient/rex.
	Path string `json:"path,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (f *Facade) DeepCopyObject() runtime.Object {
	meta := f.ObjectMeta
	return &Facade{TypeMeta: f.TypeMeta, ObjectMeta: *meta.DeepCopy()}
}

// DeepCopyObject implements runtime.Object.
func (o *FacadeOptions) DeepCopyObject() runtime.Object {
	out := *o
	return &out
}

// OpenAPIModelName is the name of the kind's schema.
func (Facade) OpenAPIModelName() string { return modelPrefix + "Facade" }

func addFacades(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Facade{}, &FacadeOptions{})
	return scheme.AddConversionFunc((*url.Values)(nil), (*FacadeOptions)(nil), func(query, options any, _ conversion.Scope) error {
		options.(*FacadeOptions).Path = query.(*url.Values).Get("path")
		return nil
	})
}
