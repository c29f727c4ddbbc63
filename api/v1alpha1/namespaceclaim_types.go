package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NamespacedSiteReference names a Site in the namespace that a NamespaceClaim assigns.
type NamespacedSiteReference struct {
	// name is the name of the Site.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// uid is the UID of the Site.
	UID types.UID `json:"uid"`
}

// NamespaceClaimSpec names the Site that holds a namespace.
type NamespaceClaimSpec struct {
	// siteRef is the Site that holds the namespace. siteRef changes only after that Site was deleted.
	SiteRef NamespacedSiteReference `json:"siteRef"`
}

// NamespaceClaim assigns the namespace in its name to one Site. Names of objects are unique, so two
// Sites never share a namespace, even with several controllers. A NamespaceClaim is cluster-scoped,
// so that rights in the namespace do not suffice to create one.
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

// HeldBy reports whether site holds the namespace.
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
