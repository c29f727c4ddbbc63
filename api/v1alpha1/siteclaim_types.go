package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SiteReference names the Site that holds a claim.
type SiteReference struct {
	// namespace is the namespace of the Site.
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`
	// name is the name of the Site.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// uid is the UID of the Site that holds the claim. It changes when a new Site with the same namespace and
	// name adopts retained data.
	UID types.UID `json:"uid"`
}

// SiteClaimSpec names the Site that holds a siteID, and the key of the site's data.
type SiteClaimSpec struct {
	// siteRef is the Site that holds the siteID.
	SiteRef SiteReference `json:"siteRef"`

	// siteKey is the key of the site's data. It is generated once and is not the siteID, so that a
	// later holder of the siteID cannot reach older data. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="siteKey is immutable"
	SiteKey string `json:"siteKey"`

	// former are the Sites that held the siteID before SiteMoves to other namespaces, the latest last. The
	// site accepts ServiceAccount tokens with their audiences too. An administrator can remove entries.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Former []SiteReference `json:"former,omitempty"`

	// external is the Secret, in the namespace of the Site, of the external database in which the site's
	// data is stored. It is set only if the Site has storage.postgres.external. A Site that is created again
	// with another storage is refused. An administrator can remove external if that database no longer has
	// data of the site.
	// +optional
	External *DSNReference `json:"external,omitempty"`

	// placement is the pool database in which the site's data is stored. It is set only if the Site
	// has storage.postgres.pool.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// reserved is the other pool database of a SiteMove that has not ended: the target of the move,
	// or, after the switch, the former database. The Site counts towards the capacity of both
	// databases.
	// +optional
	Reserved *Placement `json:"reserved,omitempty"`
}

// Placement names a database of the pool of a SiteClass.
type Placement struct {
	// className is the name of the SiteClass.
	// +required
	ClassName string `json:"className,omitempty"`
	// database is the name of the database in the pool.
	// +required
	Database string `json:"database,omitempty"`
}

// SiteClaim assigns the siteID in its name to one Site. It exists as long as the site's data. If a
// SiteClaim is deleted by hand, the siteID is released and the data is abandoned.
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

// HeldBy reports whether site holds the claim. It returns false for a later Site with the same name,
// which has another UID.
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
