package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Retention is how long a site keeps deleted records, superseded versions, ended webhook deliveries
// and audit entries. Older data is removed in the background, and cannot be restored.
type Retention struct {
	// tombstones is how long a deleted record is kept with its history, a duration of at least 1h. After
	// that the record is purged: reads return 404 instead of 410. Default: for ever.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^[+]?([0-9.]+(h|m|s|ms|us|µs|ns))+$') && duration(self) >= duration('1h')",message="tombstones must be at least 1h, in hours, minutes or seconds, such as 720h"
	Tombstones *metav1.Duration `json:"tombstones,omitempty"`

	// versions is how long a version is kept after it was superseded, a duration of at least 1h. Reads
	// of a removed version return 404, and histories omit it. The newest version is always kept.
	// Default: for ever; maxVersions of spec.storage.cluster applies as well.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^[+]?([0-9.]+(h|m|s|ms|us|µs|ns))+$') && duration(self) >= duration('1h')",message="versions must be at least 1h, in hours, minutes or seconds, such as 720h"
	Versions *metav1.Duration `json:"versions,omitempty"`

	// deliveries is how long ended webhook deliveries are kept, a duration of at least 1h. Pending
	// deliveries are kept. With storage.type Cluster, deliveries applies only to failed and
	// undelivered ones; of the successful ones, the last 200 of each webhook are kept. Default: 168h
	// (7 days).
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^[+]?([0-9.]+(h|m|s|ms|us|µs|ns))+$') && duration(self) >= duration('1h')",message="deliveries must be at least 1h, in hours, minutes or seconds, such as 720h"
	Deliveries *metav1.Duration `json:"deliveries,omitempty"`

	// audit is how long audit entries are kept, a duration of at least 24h. If set, it takes
	// precedence over spec.audit.retention. Default: spec.audit.retention.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^[+]?([0-9.]+(h|m|s|ms|us|µs|ns))+$') && duration(self) >= duration('24h')",message="audit must be at least 24h, in hours, minutes or seconds, such as 2160h"
	Audit *metav1.Duration `json:"audit,omitempty"`
}
