package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SupersededVersion is one earlier version of a record.
type SupersededVersion struct {
	// uid is the UID that the record had at this version.
	UID string `json:"uid"`
	// method is the HTTP method of the interaction that wrote the version.
	Method string `json:"method"`
	// created is when the record was last created before this version, or by it.
	Created metav1.MicroTime `json:"created"`
	// updated is when the version was written.
	Updated metav1.MicroTime `json:"updated"`
	// deleted is true if the version is a tombstone: the version by which the record was deleted.
	// +optional
	Deleted bool `json:"deleted,omitempty"`
	// body is the JSON text of the version, compressed with zstd (RFC 8878). It is empty for a
	// tombstone.
	// +optional
	Body []byte `json:"body,omitempty"`
	// idOffset is the byte offset in the uncompressed body at which the API servers insert the id.
	// +optional
	IDOffset int `json:"idOffset,omitempty"`
	// metaOffset is the byte offset in the uncompressed body at which the API servers insert versionId and
	// lastUpdated of meta.
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
	// of the Record belongs to an incomplete write, and readers ignore that version.
	Versions map[string]SupersededVersion `json:"versions,omitempty"`
}

// RecordHistory holds the superseded versions of one Record. maxVersions and maxObjectSize of the
// Site's spec.storage.cluster limit the number of versions and their total size.
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
