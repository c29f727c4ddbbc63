// Package v1alpha1 has the custom resources of Paddock: Site (a clinic), SiteClass (defaults and
// databases for Sites), SiteClaim (which Site holds a siteID), NamespaceClaim (which Site holds a
// namespace), SiteMove (moves a Site to another storage or namespace), WebhookEvent (turns a type of
// events on or off) and Webhook (where events are delivered). It imports apimachinery only.
//
// +kubebuilder:object:generate=true
// +groupName=paddock.health
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "paddock.health", Version: "v1alpha1"}

// SchemeBuilder collects the functions that register this package's kinds.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers the kinds of this package.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Site{}, &SiteList{}, &SiteClaim{}, &SiteClaimList{}, &NamespaceClaim{}, &NamespaceClaimList{},
		&WebhookEvent{}, &WebhookEventList{}, &Webhook{}, &WebhookList{},
		&SiteMove{}, &SiteMoveList{}, &SiteClass{}, &SiteClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
