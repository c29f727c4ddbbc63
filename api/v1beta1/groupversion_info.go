// Package v1beta1 has version v1beta1 of Site, SiteClass, Webhook and WebhookEvent. Its fields, and
// the rules for them, are those of v1alpha1, so kube-apiserver converts objects without a conversion
// webhook. Objects are stored as v1alpha1. It imports apimachinery and v1alpha1 only.
//
// +kubebuilder:object:generate=true
// +groupName=paddock.health
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "paddock.health", Version: "v1beta1"}

// SchemeBuilder collects the functions that register this package's kinds.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers the kinds of this package.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Site{}, &SiteList{}, &SiteClass{}, &SiteClassList{}, &Webhook{}, &WebhookList{}, &WebhookEvent{}, &WebhookEventList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
