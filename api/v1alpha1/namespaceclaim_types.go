package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NamespacedSiteReference names a Site of a namespace that is known already.
type NamespacedSiteReference struct {
	// name of the Site.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// uid of the Site.
	UID types.UID `json:"uid"`
}

// NamespaceClaimSpec says which Site a namespace is for.
type NamespaceClaimSpec struct {
	// siteRef is the Site; it changes only when that Site is gone.
	SiteRef NamespacedSiteReference `json:"siteRef"`
}

// NamespaceClaim gives the namespace that is its name to one Site. The API
// server admits one object of a name, so two Sites never share a namespace,
// whoever reconciles them. It is cluster-scoped so that nobody with rights in
// the namespace alone can forge it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=paddock
// +kubebuilder:printcolumn:name="Site",type=string,JSONPath=`.spec.siteRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NamespaceClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NamespaceClaimSpec `json:"spec"`
}

// HeldBy reports whether the namespace is given to this very Site.
func (c *NamespaceClaim) HeldBy(site *Site) bool {
	return c.Name == site.Namespace && c.Spec.SiteRef.Name == site.Name && c.Spec.SiteRef.UID == site.UID
}

// NamespaceClaimList is a list of NamespaceClaims.
// +kubebuilder:object:root=true
type NamespaceClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NamespaceClaim `json:"items"`
}
