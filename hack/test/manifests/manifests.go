// Package manifests checks that manifests have only fields of one release of Kubernetes, with values of their types. The
// release is that of the module k8s.io/api. The module in oldest compiles this package with the oldest supported release.
package manifests

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/yaml"
)

// otherGroups are API groups that are not Kubernetes' own.
var otherGroups = []string{"paddock.health", "cert-manager.io", "gateway.networking.k8s.io", "monitoring.coreos.com"}

// Check returns an error for each document of Kubernetes' own groups with an unknown kind, an unknown or repeated field,
// or a value of another type. It returns how many documents it has checked.
func Check(text string) (checked int, err error) {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(types); err != nil {
			return 0, err
		}
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, types, types, json.SerializerOptions{Yaml: true, Strict: true})
	var errs []error
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			errs = append(errs, err)
			continue
		}
		if len(object.Object) == 0 || slices.Contains(otherGroups, object.GroupVersionKind().Group) {
			continue
		}
		checked++
		if _, _, err := decoder.Decode([]byte(document), nil, nil); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err))
		}
	}
	return checked, errors.Join(errs...)
}
