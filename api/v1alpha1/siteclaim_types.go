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

// SiteClaimSpec is the Site that holds a siteID, and the key of its data.
type SiteClaimSpec struct {
	// siteRef is the Site that holds the siteID.
	SiteRef SiteReference `json:"siteRef"`

	// siteKey is the key of the site's data. It is generated once and is not the siteID, so that a
	// later holder of the siteID cannot reach older data. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="siteKey is immutable"
	SiteKey string `json:"siteKey"`

	// placement is the database of a pool that has the data. Only claims of Sites with
	// storage.postgres.pool have it.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// reserved is another database of a pool, which has or gets a copy of the data while a SiteMove moves
	// the Site. It counts towards the capacity of the database.
	// +optional
	Reserved *Placement `json:"reserved,omitempty"`
}

// Placement is a database of the pool of a SiteClass.
type Placement struct {
	// className is the name of the SiteClass.
	// +required
	ClassName string `json:"className,omitempty"`
	// database is the name of the database in the pool.
	// +required
	Database string `json:"database,omitempty"`
}

// SiteClaim assigns the siteID in its name to one Site. It exists as long as the site's data.
// Deleting it by hand releases the siteID and abandons the data.
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

// HeldBy reports whether site holds the claim. It is false for a Site with the same name but
// another uid, which was created later.
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
