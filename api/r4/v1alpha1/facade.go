package v1alpha1

import (
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// FacadeResource is the resource whose subresources serve the FHIR and AHDS APIs of a site.
const FacadeResource = "facades"

// Facade represents the FHIR and AHDS APIs of a site and has the name of the Site. Its subresources
// fhir and ahds serve these APIs to callers that kube-apiserver has authenticated.
type Facade struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// FacadeOptions are the options of a request to a subresource of a Facade.
type FacadeOptions struct {
	metav1.TypeMeta `json:",inline"`

	// path is the path of the request relative to the base URL of the FHIR or AHDS API, such as
	// /patient/rex.
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

// OpenAPIModelName returns the name of the kind's schema.
func (Facade) OpenAPIModelName() string { return modelPrefix + "Facade" }

func addFacades(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Facade{}, &FacadeOptions{})
	return scheme.AddConversionFunc((*url.Values)(nil), (*FacadeOptions)(nil), func(query, options any, _ conversion.Scope) error {
		options.(*FacadeOptions).Path = query.(*url.Values).Get("path")
		return nil
	})
}
