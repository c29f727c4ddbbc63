package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RecordSpec is the latest version of a record.
type RecordSpec struct {
	// siteKey is the key of the site's data, from its SiteClaim.
	SiteKey string `json:"siteKey"`
	// type is the type of the record, such as a FHIR resource type.
	Type string `json:"type"`
	// id is the ID of the record in its original case. The object's name has it in lower case.
	ID string `json:"id"`
	// uid is the UID of the record. It changes when the record is created again after a deletion.
	UID string `json:"uid"`
	// lineage is the uid that the record had when this Record object was created. The name of the
	// RecordHistory contains lineage, so a record that is created again after a purge has another
	// RecordHistory.
	Lineage string `json:"lineage"`
	// version is the versionId of this version, counted from 1.
	// +kubebuilder:validation:Minimum=1
	Version int64 `json:"version"`
	// method is the HTTP method of the interaction that wrote this version.
	Method string `json:"method"`
	// created is when the record was last created, with a resolution of milliseconds.
	Created metav1.MicroTime `json:"created"`
	// updated is when this version was written, with a resolution of milliseconds. It is later than
	// the time of every earlier version.
	Updated metav1.MicroTime `json:"updated"`
	// deleted is true if this version is a tombstone: the record was deleted.
	// +optional
	Deleted bool `json:"deleted,omitempty"`
	// purging is true while the record is being removed with its history.
	// +optional
	Purging bool `json:"purging,omitempty"`
	// placeholder is true during the first step of the creation of a record. purging is also true
	// then, but there is no history yet, and the creation may still complete.
	// +optional
	Placeholder bool `json:"placeholder,omitempty"`
	// body is the JSON text of the record, unchanged except that its id is the empty
	// string, and that meta has neither versionId nor lastUpdated.
	// +optional
	Body string `json:"body,omitempty"`
	// idOffset is the byte offset in body at which the API servers insert the id.
	// +optional
	IDOffset int `json:"idOffset,omitempty"`
	// metaOffset is the byte offset in body at which the API servers insert versionId and lastUpdated of
	// meta.
	// +optional
	MetaOffset int `json:"metaOffset,omitempty"`
	// metadata is the Kubernetes metadata that the aggregated API stores with the record, as JSON text:
	// labels, annotations, managed fields.
	// +optional
	Metadata string `json:"metadata,omitempty"`
	// metadataVersion is the record's version when metadata was written.
	// +optional
	MetadataVersion int64 `json:"metadataVersion,omitempty"`
	// history holds the estimated size in bytes of each version in the RecordHistory, oldest first. The
	// last element is the size of the version before the current one.
	// +optional
	// +listType=atomic
	History []int64 `json:"history,omitempty"`
	// historyUpdated holds when each version listed in history was written, in milliseconds since
	// 1970.
	// +optional
	// +listType=atomic
	HistoryUpdated []int64 `json:"historyUpdated,omitempty"`
	// historyDeletions are the numbers of the versions listed in history that are tombstones.
	// +optional
	// +listType=atomic
	HistoryDeletions []int64 `json:"historyDeletions,omitempty"`
	// historyLabels holds the privacy labels of each version listed in history, as JSON of
	// store.Labels. An element is empty if an older release wrote the version.
	// +optional
	// +listType=atomic
	HistoryLabels []string `json:"historyLabels,omitempty"`
	// labels holds the privacy labels of the previous version, as JSON of store.Labels. Only
	// tombstones have labels.
	// +optional
	Labels string `json:"labels,omitempty"`
	// historyDropped is how many versions this write removed from history. The next write of the
	// record removes these versions from the RecordHistory, so that an incomplete write removes no
	// version that is still listed.
	// +optional
	HistoryDropped int `json:"historyDropped,omitempty"`
	// claims are the exclusive claims that the record holds.
	// +optional
	// +listType=atomic
	Claims []HeldClaim `json:"claims,omitempty"`
	// write is the id of the write that produced this state. A writer that received no response
	// compares this id with its own to find out whether its write succeeded.
	Write string `json:"write"`
	// fence is incremented when a claim of an incomplete write is revoked. The changed resourceVersion
	// makes that write fail.
	// +optional
	Fence int64 `json:"fence,omitempty"`
	// hasEvents is true if events is not empty.
	// +optional
	HasEvents bool `json:"hasEvents,omitempty"`
	// events are the events of writes of the record that wait for their WebhookDeliveries, in the order
	// of acceptance. A purge does not delete an object that has events.
	// +optional
	// +listType=atomic
	Events []PendingEvent `json:"events,omitempty"`
}

// PendingEvent is an event that waits for its WebhookDeliveries, of which some may exist.
type PendingEvent struct {
	// id is the ID of the event within its site.
	ID string `json:"id"`
	// type is the type of the event, such as user.created.
	Type string `json:"type"`
	// subject identifies the record or other thing that the event is about, such as Practitioner/1.
	// +optional
	Subject string `json:"subject,omitempty"`
	// targets are the ids of the webhooks that receive the event.
	// +optional
	// +listType=atomic
	Targets []string `json:"targets,omitempty"`
	// restricted is true if only webhooks with clearance Privileged receive the event's data.
	// +optional
	Restricted bool `json:"restricted,omitempty"`
	// accepted is the time of the write that produced the event, with a resolution of milliseconds.
	Accepted metav1.MicroTime `json:"accepted"`
	// position is the number of the event among the events of one write, from 0.
	// +optional
	Position int32 `json:"position,omitempty"`
	// resourceVersion is the object's resourceVersion after the write that produced the event. If it is
	// unset, the object still has that resourceVersion. The next write sets it.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// envelope is the JSON text to deliver, without the member sequence, compressed with zstd (RFC
	// 8878).
	Envelope []byte `json:"envelope"`
	// sequenceOffset is the byte offset in the uncompressed envelope at which the member sequence is
	// inserted.
	SequenceOffset int32 `json:"sequenceOffset"`
}

// HeldClaim is an exclusive claim on a line, such as the resource of a slot, in the record that
// holds the claim. The RecordClaim of the line has an entry with the same nonce.
type HeldClaim struct {
	// line is the name of the line that is claimed.
	Line string `json:"line"`
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
}

// Record is the latest version of one record of a site.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=records,categories=paddock-records
// +kubebuilder:selectablefield:JSONPath=`.spec.siteKey`
// +kubebuilder:selectablefield:JSONPath=`.spec.hasEvents`
// +kubebuilder:selectablefield:JSONPath=`.spec.type`
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
