package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SiteReference names the Site that holds a claim.
type SiteReference struct {
	// namespace of the Site.
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`
	// name of the Site.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// uid of the Site that holds the claim now. It changes when a Site of the
	// same namespace and name adopts retained data.
	UID types.UID `json:"uid"`
}

// SiteClaimSpec says who holds a siteID and which data is its own.
type SiteClaimSpec struct {
	// siteRef is the holder.
	SiteRef SiteReference `json:"siteRef"`

	// siteKey is the key of the site's data, minted once. It is never the
	// siteID, so that a later holder of the siteID does not meet older data.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="siteKey is immutable"
	SiteKey string `json:"siteKey"`
}

// SiteClaim gives the siteID that is its name to one Site. It lives as long as
// the data does: deleting it by hand frees the siteID and gives up the data.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=paddock
// +kubebuilder:selectablefield:JSONPath=`.spec.siteRef.namespace`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.siteRef.namespace`
// +kubebuilder:printcolumn:name="Site",type=string,JSONPath=`.spec.siteRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SiteClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SiteClaimSpec `json:"spec"`
}

// HeldBy reports whether the claim is held by this very Site: a namesake that
// was created later has another uid.
func (c *SiteClaim) HeldBy(site *Site) bool {
	ref := c.Spec.SiteRef
	return ref.Namespace == site.Namespace && ref.Name == site.Name && ref.UID == site.UID
}

// SiteClaimList is a list of SiteClaims.
// +kubebuilder:object:root=true
type SiteClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SiteClaim `json:"items"`
}
