package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClaimEntry is one claim on a line. The owner is the record that makes the claim. The claim is
// effective if the owner's Record has a claim with the same nonce, or until the deadline of the
// owner's write.
type ClaimEntry struct {
	// record is the name of the owner's Record.
	Record string `json:"record"`
	// nonce identifies the claim among those on the line.
	Nonce string `json:"nonce"`
	// from is the start of the claimed period, inclusive. If from and until are unset, the whole line is
	// claimed.
	// +optional
	From *metav1.MicroTime `json:"from,omitempty"`
	// +optional
	Until *metav1.MicroTime `json:"until,omitempty"`
	// expires is when the claim expires. If it is unset, the claim lasts until a write releases it or
	// the record is deleted.
	// +optional
	Expires *metav1.MicroTime `json:"expires,omitempty"`
	// deadline is the time by which the write that makes the claim must be complete. After
	// it, the claim counts only if the Record has it.
	// +optional
	Deadline *metav1.MicroTime `json:"deadline,omitempty"`
}

// RecordClaimSpec holds the claims on one line.
type RecordClaimSpec struct {
	// siteKey is the key of the site's data.
	SiteKey string `json:"siteKey"`
	// line is the name of the line, such as that of the resource of a slot.
	Line string `json:"line"`
	// entries are the claims on the line. Effective claims of different records never overlap.
	// +optional
	// +listType=atomic
	Entries []ClaimEntry `json:"entries,omitempty"`
}

// RecordClaim is the claim table of one line, such as the resource of a slot. Every update states the
// resourceVersion that its writer read, so only one of two concurrent updates succeeds.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=recordclaims,categories=paddock-records
// +kubebuilder:selectablefield:JSONPath=`.spec.siteKey`
type RecordClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RecordClaimSpec `json:"spec"`
}

// RecordClaimList is a list of RecordClaims.
// +kubebuilder:object:root=true
type RecordClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RecordClaim `json:"items"`
}
