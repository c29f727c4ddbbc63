package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// SiteClass is a set of values that a platform team gives to the Sites of many tenants: where their
// records are stored, and defaults of limits, retention, privacy, issuers and exposure. A Site
// selects its SiteClass by spec.className.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=paddock,path=siteclasses
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=`.spec.storage.type`
// +kubebuilder:printcolumn:name="Default",type=string,JSONPath=`.metadata.annotations.paddock\.health/is-default-class`
// +kubebuilder:printcolumn:name="Sites",type=integer,JSONPath=`.status.sites`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must have at most 63 characters"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40 || !has(self.spec.storage) || !has(self.spec.storage.postgres) || !has(self.spec.storage.postgres.pool) || !has(self.spec.storage.postgres.pool.template)",message="metadata.name must have at most 40 characters with storage.postgres.pool.template, because the names of Clusters begin with it"
type SiteClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the values that apply to fields that Sites of the class do not set.
	// +optional
	// +kubebuilder:default={}
	Spec v1alpha1.SiteClassSpec `json:"spec,omitzero"`
	// +optional
	Status v1alpha1.SiteClassStatus `json:"status,omitzero"`
}

// SiteClassList is a list of SiteClasses.
// +kubebuilder:object:root=true
type SiteClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SiteClass `json:"items"`
}
