package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

// Site configures the APIs and the records of one clinic: the path segment of its URL, storage, and
// rules for access. A namespace can have only one Site. A second Site gets the condition Accepted
// with status False.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=paddock
// +kubebuilder:printcolumn:name="Site ID",type=string,JSONPath=`.status.siteID`
// +kubebuilder:printcolumn:name="Storage",type=string,JSONPath=`.spec.storage.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.siteID) || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",fieldPath=".spec.siteID",message="metadata.name cannot be the siteID: set spec.siteID to at most 63 letters a-z, digits and hyphens"
// +kubebuilder:validation:XValidation:rule="self.spec.storage.type == oldSelf.spec.storage.type || has(self.status) && has(self.status.move) && self.status.move.phase == 'Switching' || has(self.spec.className) && self.spec.className.size() > 0 && (!has(oldSelf.status) || !has(oldSelf.status.siteKey))",fieldPath=".spec.storage.type",message="storage.type is changed by a SiteMove only: kubectl paddock move"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.storage.postgres) || !has(oldSelf.spec.storage.postgres) || has(self.spec.storage.postgres.external) == has(oldSelf.spec.storage.postgres.external) && has(self.spec.storage.postgres.pool) == has(oldSelf.spec.storage.postgres.pool) && (!has(self.spec.storage.postgres.pool) || self.spec.storage.postgres.pool == oldSelf.spec.storage.postgres.pool) || has(self.status) && has(self.status.move) && self.status.move.phase == 'Switching'",fieldPath=".spec.storage.postgres",message="storage.postgres is changed between external, provisioned and pool, or to another region, by a SiteMove only"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.storage.postgres) || !has(self.spec.storage.postgres.provisioned) || !has(oldSelf.spec.storage.postgres) || !has(oldSelf.spec.storage.postgres.provisioned) || (has(self.spec.storage.postgres.provisioned.name) && self.spec.storage.postgres.provisioned.name == 'paddock-postgres-b') == (has(oldSelf.spec.storage.postgres.provisioned.name) && oldSelf.spec.storage.postgres.provisioned.name == 'paddock-postgres-b') || has(self.status) && has(self.status.move) && self.status.move.phase == 'Switching' || !has(oldSelf.status) || !has(oldSelf.status.siteKey)",fieldPath=".spec.storage.postgres.provisioned.name",message="storage.postgres.provisioned.name is changed by a SiteMove only"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.move) || self.status.move.phase == 'Switching' || self.spec.storage == oldSelf.spec.storage",fieldPath=".spec.storage",message="storage cannot be changed during a SiteMove: set spec.decision of the SiteMove first"
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state. Its default is {}, so that the rules on its fields always apply.
	// +optional
	// +kubebuilder:default={}
	Spec v1alpha1.SiteSpec `json:"spec,omitzero"`
	// +optional
	Status v1alpha1.SiteStatus `json:"status,omitzero"`
}

// SiteList is a list of Sites.
// +kubebuilder:object:root=true
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}
