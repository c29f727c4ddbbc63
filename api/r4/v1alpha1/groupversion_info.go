// Package v1alpha1 has the Kubernetes kinds of FHIR R4 that the aggregated API serves: one generic Go
// type, and a kind for each resource type. It imports apimachinery only.
//
// There are no CRDs of these kinds.
// +kubebuilder:skip
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the kinds in this package. The group contains the FHIR
// release (r4). The version states the maturity of the Kubernetes API.
var GroupVersion = schema.GroupVersion{Group: "r4.fhir.paddock.health", Version: "v1alpha1"}

// SchemeBuilder collects the functions that register this package's kinds.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers the kinds of this package.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	for _, kind := range Kinds {
		scheme.AddKnownTypeWithName(GroupVersion.WithKind(kind.Name), kind.New())
		scheme.AddKnownTypeWithName(GroupVersion.WithKind(kind.Name+"List"), kind.NewList())
	}
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return addFacades(scheme)
}
