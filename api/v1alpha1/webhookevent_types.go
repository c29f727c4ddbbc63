package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// EventType is one of the types of events that can trigger webhooks.
// +kubebuilder:validation:Enum=appointment.created;appointment.updated;product.created;product.updated;user.created;user.updated;consult.created;consult.updated;therapeutic.created;therapeutic.updated
type EventType string

// MaxExtensions is the maximum size in bytes of the JSON of extensions. The AHDS API rejects larger
// extensions. The CRD schema cannot express the limit, so the controller sets the condition Accepted
// of an object that was written with larger extensions through Kubernetes to False.
const MaxExtensions = 16 << 10

// ConditionActive is true if events are delivered. For a WebhookEvent this requires that it is
// accepted and enabled, and that an accepted Webhook of its type is active and not disabled. For a
// Webhook it requires that it is accepted, active and not disabled, and that a WebhookEvent enables
// its type.
const ConditionActive = "Active"

// ConditionDelivering of a WebhookEvent is true if its condition Active is true, no active Webhook of
// its type has failed attempts since its last success, and at least one such Webhook has accepted an
// event. That of a Webhook is true if its condition Active is true, and its receiver accepted the
// event of the last attempt. Its message has the result of the last failed attempt.
const ConditionDelivering = "Delivering"

// Reasons of the Accepted condition of a WebhookEvent or a Webhook, in addition to ReasonAccepted,
// ReasonSecretNotFound and ReasonInvalidSecret.
const (
	// ReasonExtensionsTooLarge means that extensions has more than MaxExtensions bytes.
	ReasonExtensionsTooLarge = "ExtensionsTooLarge"
)

// Reasons of the Active condition, in addition to ReasonNotAccepted.
const (
	// ReasonActive means that events are delivered.
	ReasonActive = "Active"
	// ReasonDisabled means that the WebhookEvent is not enabled, or the delivery process disabled
	// the Webhook.
	ReasonDisabled = "Disabled"
	// ReasonNoWebhooks means that no Webhook that is active, accepted and not disabled has the type
	// of the WebhookEvent.
	ReasonNoWebhooks = "NoWebhooks"
	// ReasonInactive means that spec.active of the Webhook is not true.
	ReasonInactive = "Inactive"
	// ReasonTypeDisabled means that no WebhookEvent enables the type of the Webhook.
	ReasonTypeDisabled = "TypeDisabled"
)

// Reasons of the Delivering condition, in addition to ReasonFailing.
const (
	// ReasonNotActive means that the condition Active is not true.
	ReasonNotActive = "NotActive"
	// ReasonNoDeliveries means that no event was accepted yet: by the Webhook, or by any active Webhook of
	// the WebhookEvent's type.
	ReasonNoDeliveries = "NoDeliveries"
	// ReasonDelivered means that events are accepted: by the Webhook, or by the active Webhooks of the
	// WebhookEvent's type.
	ReasonDelivered = "Delivered"
)

// WebhookEventSpec turns one type of events on or off.
type WebhookEventSpec struct {
	// eventType is the type of events that is turned on or off.
	// +required
	EventType EventType `json:"eventType,omitempty"`

	// enabled turns the events of the type on if it is true. They are on if any WebhookEvent in the
	// namespace enables the type.
	// +required
	Enabled *bool `json:"enabled,omitempty"`

	// description is a text for people, at most 10000 characters. Paddock does not interpret it.
	// +optional
	// +kubebuilder:validation:MaxLength=10000
	Description string `json:"description,omitempty"`

	// extensions holds additional members that vendors or practices define, at most 16 KiB of JSON.
	// Paddock does not interpret them. If extensions is larger, the condition Accepted is False.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Extensions *runtime.RawExtension `json:"extensions,omitempty"`
}

// WebhookEventStatus is the state observed by the controller.
type WebhookEventStatus struct {
	// observedGeneration is the metadata.generation that the conditions were computed for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the conditions of the WebhookEvent, of the types Accepted, Active and
	// Delivering.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// webhooks is the number of Webhooks that receive events of the type: those that are active,
	// accepted and not disabled.
	// +optional
	Webhooks int32 `json:"webhooks"`
}

// WebhookEvent turns one type of events in a site on or off. The AHDS API serves it as the resource
// webhook-event.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=paddock
// +kubebuilder:printcolumn:name="Event Type",type=string,JSONPath=`.spec.eventType`
// +kubebuilder:printcolumn:name="Enabled",type=boolean,JSONPath=`.spec.enabled`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].status`
// +kubebuilder:printcolumn:name="Delivering",type=string,JSONPath=`.status.conditions[?(@.type=="Delivering")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Active")].reason`
// +kubebuilder:printcolumn:name="Webhooks",type=integer,JSONPath=`.status.webhooks`
// +kubebuilder:printcolumn:name="Description",type=string,priority=1,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WebhookEvent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec WebhookEventSpec `json:"spec,omitzero"`
	// +optional
	Status WebhookEventStatus `json:"status,omitzero"`
}

// WebhookEventList is a list of WebhookEvents.
// +kubebuilder:object:root=true
type WebhookEventList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WebhookEvent `json:"items"`
}
