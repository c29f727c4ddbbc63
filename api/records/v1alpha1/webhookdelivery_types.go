package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeliveryStatus is the state of a delivery.
// +kubebuilder:validation:Enum=Pending;Delivered;Failed;Undelivered
type DeliveryStatus string

const (
	// DeliveryPending means that the delivery has not ended: the next attempt is due or scheduled.
	DeliveryPending DeliveryStatus = "Pending"
	// DeliveryDelivered means that the receiver responded with 2xx. It occurs only in a
	// WebhookDeliveryLog.
	DeliveryDelivered DeliveryStatus = "Delivered"
	// DeliveryFailed means that the final attempt of the schedule failed.
	DeliveryFailed DeliveryStatus = "Failed"
	// DeliveryUndelivered means that the webhook was disabled or deleted when an attempt was due, or
	// was disabled because of the failed attempt.
	DeliveryUndelivered DeliveryStatus = "Undelivered"
)

// DeliveryAttempt is one request to a receiver.
type DeliveryAttempt struct {
	// at is when the request was sent.
	At metav1.MicroTime `json:"at"`
	// milliseconds is the duration of the attempt in milliseconds.
	// +optional
	Milliseconds int64 `json:"milliseconds,omitempty"`
	// statusCode is the status code of the response. It is unset if there was no response.
	// +optional
	StatusCode int32 `json:"statusCode,omitempty"`
	// reason is a stable code for the result of the attempt, such as delivered, status or timeout.
	Reason string `json:"reason"`
	// message describes the result of the attempt, for people.
	// +optional
	Message string `json:"message,omitempty"`
	// response is the beginning of the body of the response, or empty if there was none.
	// +optional
	Response []byte `json:"response,omitempty"`
}

// WebhookDeliverySpec is the delivery of one event to one webhook.
type WebhookDeliverySpec struct {
	// siteKey is the key of the site's data.
	SiteKey string `json:"siteKey"`
	// webhook is the id of the webhook in the AHDS API.
	Webhook string `json:"webhook"`
	// event is the id of the event.
	Event string `json:"event"`
	// type is the type of the event, such as user.created.
	Type string `json:"type"`
	// subject identifies the record or other thing that the event is about, such as Practitioner/1.
	// +optional
	Subject string `json:"subject,omitempty"`
	// sequence is a number that increases with each event of a subject.
	Sequence int64 `json:"sequence"`
	// accepted is when the event was accepted, with a resolution of milliseconds.
	Accepted metav1.MicroTime `json:"accepted"`
	// restricted is true if only webhooks with the clearance Privileged receive the event's data.
	// +optional
	Restricted bool `json:"restricted,omitempty"`
	// envelope is the JSON text to deliver, compressed with zstd (RFC 8878).
	// +optional
	Envelope []byte `json:"envelope,omitempty"`
	// status is the state of the delivery.
	Status DeliveryStatus `json:"status"`
	// since is when status last changed.
	Since metav1.MicroTime `json:"since"`
	// nextAttempt is when the next attempt of a pending delivery is due. It is unset for other
	// deliveries.
	// +optional
	NextAttempt *metav1.MicroTime `json:"nextAttempt,omitempty"`
	// scheduled is the number of attempts since the retry schedule began. A redelivery starts the
	// schedule again.
	// +optional
	Scheduled int32 `json:"scheduled,omitempty"`
	// attempts are the last 20 attempts, oldest first.
	// +optional
	// +listType=atomic
	Attempts []DeliveryAttempt `json:"attempts,omitempty"`
	// lastReason is the reason of the most recent attempt.
	// +optional
	LastReason string `json:"lastReason,omitempty"`
}

// WebhookDelivery is the delivery of one event to one webhook. It is deleted when the receiver has
// accepted the event, or when spec.retention.deliveries of the Site (default: seven days) has passed
// since its status became Failed or Undelivered.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=webhookdeliveries,categories=paddock-records
// +kubebuilder:selectablefield:JSONPath=`.spec.siteKey`
// +kubebuilder:selectablefield:JSONPath=`.spec.webhook`
// +kubebuilder:selectablefield:JSONPath=`.spec.status`
// +kubebuilder:printcolumn:name="Webhook",type=string,JSONPath=`.spec.webhook`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Subject",type=string,JSONPath=`.spec.subject`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.spec.status`
// +kubebuilder:printcolumn:name="Attempts",type=integer,JSONPath=`.spec.scheduled`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.lastReason`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.spec.nextAttempt`
// +kubebuilder:printcolumn:name="Accepted",type=date,JSONPath=`.spec.accepted`
type WebhookDelivery struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WebhookDeliverySpec `json:"spec"`
}

// WebhookDeliveryList is a list of WebhookDeliveries.
// +kubebuilder:object:root=true
type WebhookDeliveryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WebhookDelivery `json:"items"`
}
