package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RecordSpec is the newest version of one record.
type RecordSpec struct {
	// siteKey is the key of the site's data, from its SiteClaim.
	SiteKey string `json:"siteKey"`
	// type of the record, such as a FHIR resource type.
	Type string `json:"type"`
	// id in the spelling that was first stored; the object's name encodes it in lower case.
	ID string `json:"id"`
	// uid of the record; a record created again after a delete has another.
	UID string `json:"uid"`
	// lineage is the uid under which the object was first created. It names the
	// RecordHistory, so that the history of a purged namesake is never met.
	Lineage string `json:"lineage"`
	// version counts content changes: 1, 2, 3 …
	// +kubebuilder:validation:Minimum=1
	Version int64 `json:"version"`
	// method is the HTTP method of the interaction that made this version.
	Method string `json:"method"`
	// created is when the record was created (again), in milliseconds.
	Created metav1.MicroTime `json:"created"`
	// updated is when this version was written, in milliseconds, later than every version before.
	Updated metav1.MicroTime `json:"updated"`
	// deleted says that the record is gone and this is its tombstone.
	// +optional
	Deleted bool `json:"deleted,omitempty"`
	// purging says that the record is being removed with all its history.
	// +optional
	Purging bool `json:"purging,omitempty"`
	// placeholder says, beside purging, that the record was never more than the
	// first step of its creation: it has no history, and its creation may yet finish.
	// +optional
	Placeholder bool `json:"placeholder,omitempty"`
	// body is the JSON text of the record, byte for byte.
	// +optional
	Body string `json:"body,omitempty"`
	// idOffset and metaOffset are where the facade splices id and meta into body.
	// +optional
	IDOffset int `json:"idOffset,omitempty"`
	// +optional
	MetaOffset int `json:"metaOffset,omitempty"`
	// metadata is what the aggregated API keeps beside the record, as JSON text: labels,
	// annotations, managed fields.
	// +optional
	Metadata string `json:"metadata,omitempty"`
	// metadataVersion is the version that the record was at when metadata was written.
	// +optional
	MetadataVersion int64 `json:"metadataVersion,omitempty"`
	// history holds the encoded size in bytes of each superseded version kept in
	// the RecordHistory; the last one is that of version-1.
	// +optional
	// +listType=atomic
	History []int64 `json:"history,omitempty"`
	// historyUpdated holds when each of those versions was written, in
	// milliseconds since 1970.
	// +optional
	// +listType=atomic
	HistoryUpdated []int64 `json:"historyUpdated,omitempty"`
	// historyDeletions are the numbers of those versions that are tombstones.
	// +optional
	// +listType=atomic
	HistoryDeletions []int64 `json:"historyDeletions,omitempty"`
	// historyDropped is how many versions this write gave up. The next write
	// takes them out of the RecordHistory, so that a write that does not finish
	// takes out nothing that is still counted.
	// +optional
	HistoryDropped int `json:"historyDropped,omitempty"`
	// claims are the exclusive claims that the record holds on lines.
	// +optional
	// +listType=atomic
	Claims []HeldClaim `json:"claims,omitempty"`
	// write is the id of the write that made this state, by which a writer whose
	// answer was lost knows its own work again.
	Write string `json:"write"`
	// fence rises when a claim of an unfinished write is taken away, so that the
	// write, guarded by resourceVersion, cannot land any more.
	// +optional
	Fence int64 `json:"fence,omitempty"`
}

// HeldClaim is a claim as its owner records it. The RecordClaim of the line
// holds an entry with the same nonce.
type HeldClaim struct {
	// line is the name of what is claimed.
	Line string `json:"line"`
	// nonce tells this claim from every other one on the line.
	Nonce string `json:"nonce"`
	// from and until bound a half-open interval; both absent claim the whole line.
	// +optional
	From *metav1.MicroTime `json:"from,omitempty"`
	// +optional
	Until *metav1.MicroTime `json:"until,omitempty"`
	// expires is when the claim ends by itself; absent, it lasts as long as the record.
	// +optional
	Expires *metav1.MicroTime `json:"expires,omitempty"`
}

// Record is one record of one site in its newest version.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=records,categories=paddock-records
// +kubebuilder:selectablefield:JSONPath=`.spec.siteKey`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="ID",type=string,JSONPath=`.spec.id`
// +kubebuilder:printcolumn:name="Version",type=integer,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Updated",type=date,JSONPath=`.spec.updated`
type Record struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RecordSpec `json:"spec"`
}

// RecordList is a list of Records.
// +kubebuilder:object:root=true
type RecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Record `json:"items"`
}
