package manifests

import (
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// CheckTypes returns an error for each document of Kubernetes' own groups with an unknown kind, an
// unknown or repeated field, or a value of another type. The types are those of the Kubernetes modules
// in Paddock's go.mod. checked is the number of documents of these groups.
func CheckTypes(text string) (checked int, err error) {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(types); err != nil {
			return 0, err
		}
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, types, types, json.SerializerOptions{Yaml: true, Strict: true})
	all, err := documents(text)
	errs := []error{err}
	for _, d := range all {
		if _, _, err := decoder.Decode([]byte(d.text), nil, nil); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", d.object.GetKind(), d.object.GetName(), err))
		}
	}
	return len(all), errors.Join(errs...)
}
