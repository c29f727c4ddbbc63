package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClaimEntry is one claim on a line. It counts when its owner's Record lists the
// same nonce, or while the write that makes it so has not run out of time.
type ClaimEntry struct {
	// record is the name of the owner's Record.
	Record string `json:"record"`
	// nonce tells this claim from every other one on the line.
	Nonce string `json:"nonce"`
	// from and until bound a half-open interval; both absent claim the whole line.
	// +optional
	From *metav1.MicroTime `json:"from,omitempty"`
	// +optional
	Until *metav1.MicroTime `json:"until,omitempty"`
	// expires is when the claim ends by itself.
	// +optional
	Expires *metav1.MicroTime `json:"expires,omitempty"`
	// deadline of the write that takes the claim; absent once the write is done.
	// +optional
	Deadline *metav1.MicroTime `json:"deadline,omitempty"`
}

// RecordClaimSpec is the ledger of one line.
type RecordClaimSpec struct {
	// siteKey is the key of the site's data.
	SiteKey string `json:"siteKey"`
	// line is the name of what is claimed.
	Line string `json:"line"`
	// entries of the line; those that count never overlap.
	// +optional
	// +listType=atomic
	Entries []ClaimEntry `json:"entries,omitempty"`
}

// RecordClaim is the ledger of one line, changed by compare-and-swap alone.
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
