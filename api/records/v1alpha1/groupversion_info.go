// Package v1alpha1 has the custom resources in which storage.type Cluster stores records. They are
// internal: read and write records through the FHIR, AHDS or aggregated API. It imports apimachinery
// only.
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
		&Record{}, &RecordList{}, &RecordHistory{}, &RecordHistoryList{}, &RecordClaim{}, &RecordClaimList{},
		&AuditSegment{}, &AuditSegmentList{},
		&WebhookDelivery{}, &WebhookDeliveryList{}, &WebhookDeliveryLog{}, &WebhookDeliveryLogList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
