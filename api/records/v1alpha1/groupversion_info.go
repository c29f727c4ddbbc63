// Package v1alpha1 holds the objects in which etcd-backed storage keeps records.
// They are not for people: read and write records through the FHIR API, the AHDS
// API or the aggregated API. It imports apimachinery only.
//
// +kubebuilder:object:generate=true
// +groupName=records.paddock.health
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "records.paddock.health", Version: "v1alpha1"}

// SchemeBuilder collects the functions that register this package's kinds.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers the kinds of this package.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Record{}, &RecordList{}, &RecordHistory{}, &RecordHistoryList{}, &RecordClaim{}, &RecordClaimList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
