package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AuditSegmentSpec holds entries of a site's audit log that one API server recorded within one
// hour.
type AuditSegmentSpec struct {
	// siteKey is the key of the site's data.
	SiteKey string `json:"siteKey"`
	// hour is the start of the hour in which the entries were recorded.
	Hour metav1.Time `json:"hour"`
	// count is the number of entries.
	Count int32 `json:"count"`
	// entries are lines of JSON, compressed with zstd (RFC 8878) in one or more frames. A line that
	// starts with + contains only the time, the id, and the members that differ from the line before.
	Entries []byte `json:"entries"`
}

// AuditSegment holds entries of a site's audit log. The API server that created the AuditSegment adds
// entries of its hour until the AuditSegment is full, a write of it fails, or one hour has passed since
// the end of its hour. The AuditSegment is deleted when the retention has passed since the end of its
// hour: spec.retention.audit of the Site or, if spec.retention.audit is unset, spec.audit.retention.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=auditsegments,categories=paddock-records
// +kubebuilder:selectablefield:JSONPath=`.spec.siteKey`
// +kubebuilder:printcolumn:name="Hour",type=date,JSONPath=`.spec.hour`
// +kubebuilder:printcolumn:name="Count",type=integer,JSONPath=`.spec.count`
type AuditSegment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AuditSegmentSpec `json:"spec"`
}

// AuditSegmentList is a list of AuditSegments.
// +kubebuilder:object:root=true
type AuditSegmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AuditSegment `json:"items"`
}
