package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WebhookDeliveryLogSpec holds the latest completed deliveries of a webhook, and the number and times
// of its recent failures.
type WebhookDeliveryLogSpec struct {
	// siteKey is the key of the site's data.
	SiteKey string `json:"siteKey"`
	// webhook is the id of the webhook in the AHDS API.
	Webhook string `json:"webhook"`
	// failures is the number of failed attempts since the last success.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// failingSince is the time of the first failed attempt since the last success. It is unset if
	// there was no such attempt.
	// +optional
	FailingSince *metav1.MicroTime `json:"failingSince,omitempty"`
	// lastSuccess is when the receiver last responded with 2xx.
	// +optional
	LastSuccess *metav1.MicroTime `json:"lastSuccess,omitempty"`
	// openUntil is the time until which no attempt is made, because the circuit breaker of the webhook
	// is open. It is unset or in the past if the circuit breaker is closed.
	// +optional
	OpenUntil *metav1.MicroTime `json:"openUntil,omitempty"`
	// count is the number of deliveries in delivered.
	// +optional
	Count int32 `json:"count,omitempty"`
	// delivered is a JSON array of the latest completed deliveries, oldest first, compressed with
	// zstd (RFC 8878). Each element is the spec of a WebhookDelivery, with the envelope as text. If
	// the array would exceed 512 KiB, the oldest deliveries are stored without envelope and
	// responses.
	// +optional
	Delivered []byte `json:"delivered,omitempty"`
}

// WebhookDeliveryLog holds the latest completed deliveries of a webhook, at most 200, and the number
// and times of its recent failures.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=webhookdeliverylogs,categories=paddock-records
// +kubebuilder:selectablefield:JSONPath=`.spec.siteKey`
// +kubebuilder:printcolumn:name="Webhook",type=string,JSONPath=`.spec.webhook`
// +kubebuilder:printcolumn:name="Delivered",type=integer,JSONPath=`.spec.count`
// +kubebuilder:printcolumn:name="Last Success",type=date,JSONPath=`.spec.lastSuccess`
// +kubebuilder:printcolumn:name="Failing Since",type=date,JSONPath=`.spec.failingSince`
type WebhookDeliveryLog struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WebhookDeliveryLogSpec `json:"spec"`
}

// WebhookDeliveryLogList is a list of WebhookDeliveryLogs.
// +kubebuilder:object:root=true
type WebhookDeliveryLogList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WebhookDeliveryLog `json:"items"`
}
