package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SupersededVersion is one earlier version of a record.
type SupersededVersion struct {
	// uid is the UID of the record at that version.
	UID string `json:"uid"`
	// method is the HTTP method of the interaction that wrote the version.
	Method string `json:"method"`
	// created is when the record was last created.
	Created metav1.MicroTime `json:"created"`
	// updated is when the version was written.
	Updated metav1.MicroTime `json:"updated"`
	// deleted marks a tombstone: the version by which the record was deleted.
	// +optional
	Deleted bool `json:"deleted,omitempty"`
	// body is the JSON text, compressed with zstd (RFC 8878).
	// +optional
	Body []byte `json:"body,omitempty"`
	// idOffset and metaOffset have the same meaning as in the Record.
	// +optional
	IDOffset int `json:"idOffset,omitempty"`
	// +optional
	MetaOffset int `json:"metaOffset,omitempty"`
}

// RecordHistorySpec holds the superseded versions of one record.
type RecordHistorySpec struct {
	// siteKey is the key of the site's data.
	SiteKey string `json:"siteKey"`
	// record is the name of the Record.
	Record string `json:"record"`
	// lineage is the lineage of the Record.
	Lineage string `json:"lineage"`
	// versions are the superseded versions by version number. A number that is not below the version
	// of the Record belongs to an incomplete write, and readers ignore it.
	Versions map[string]SupersededVersion `json:"versions,omitempty"`
}

// RecordHistory holds the superseded versions of one Record. maxVersions and maxObjectSize of the
// Site's spec.storage.cluster limit their number and size.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=recordhistories,categories=paddock-records
// +kubebuilder:selectablefield:JSONPath=`.spec.siteKey`
type RecordHistory struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RecordHistorySpec `json:"spec"`
}

// RecordHistoryList is a list of RecordHistories.
// +kubebuilder:object:root=true
type RecordHistoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RecordHistory `json:"items"`
}
