package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Audit selects what the audit log records about each request to a site, and for how long.
type Audit struct {
	// level selects what is recorded. Metadata records the caller, the action, the record and the
	// outcome. Request also records the names of a request's parameters, without their values.
	// Default: Metadata.
	// +optional
	// +kubebuilder:default=Metadata
	Level AuditLevel `json:"level,omitempty"`

	// retention is how long entries are kept, a duration of at least 24h. Older entries are deleted.
	// spec.retention.audit takes precedence. Default: 2160h (90 days).
	// +optional
	// +kubebuilder:default="2160h0m0s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[+]?([0-9.]+(h|m|s|ms|us|µs|ns))+$') && duration(self) >= duration('24h')",message="retention must be at least 24h, in hours, minutes or seconds, such as 2160h"
	Retention *metav1.Duration `json:"retention,omitempty"`

	// onFailure selects how requests are handled while audit entries cannot be written. Refuse
	// responds with 503. Continue serves the requests. Default: Refuse.
	// +optional
	// +kubebuilder:default=Refuse
	OnFailure AuditFailurePolicy `json:"onFailure,omitempty"`
}

// AuditLevel selects what the audit log records about each request.
// +kubebuilder:validation:Enum=Metadata;Request
type AuditLevel string

const (
	// AuditMetadata records the caller, the action, the record and the outcome.
	AuditMetadata AuditLevel = "Metadata"
	// AuditRequest records the same as AuditMetadata, and in addition the names of a request's
	// parameters, without their values.
	AuditRequest AuditLevel = "Request"
)

// AuditFailurePolicy selects how requests are handled while audit entries cannot be written.
// +kubebuilder:validation:Enum=Refuse;Continue
type AuditFailurePolicy string

const (
	// AuditRefuse responds to requests with 503.
	AuditRefuse AuditFailurePolicy = "Refuse"
	// AuditContinue serves the requests.
	AuditContinue AuditFailurePolicy = "Continue"
)
