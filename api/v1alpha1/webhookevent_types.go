package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// EventType is one of the types of events that can trigger webhooks.
// +kubebuilder:validation:Enum=appointment.created;appointment.updated;product.created;product.updated;user.created;user.updated;consult.created;consult.updated;therapeutic.created;therapeutic.updated
type EventType string

// MaxExtensions is how many bytes the JSON of extensions may have. The schema cannot count
// them: the API servers refuse more, and the controller does not accept it.
const MaxExtensions = 16 << 10

// ConditionActive is true when events are delivered: of a WebhookEvent, when it is enabled and
// active Webhooks take its type; of a Webhook, when it is active and its type is enabled. Until
// there is delivery it is false, with ReasonNoDelivery where nothing else is missing.
const ConditionActive = "Active"

// Reasons of the Accepted condition of a WebhookEvent or a Webhook, besides ReasonAccepted,
// ReasonSecretNotFound and ReasonInvalidSecret.
const (
	// ReasonExtensionsTooLarge: extensions has more than MaxExtensions bytes.
	ReasonExtensionsTooLarge = "ExtensionsTooLarge"
)

// Reasons of the Active condition, besides ReasonNotAccepted.
const (
	// ReasonNoDelivery: nothing is missing but delivery, which this release does not have.
	ReasonNoDelivery = "NoDelivery"
	// ReasonDisabled: the WebhookEvent is not enabled.
	ReasonDisabled = "Disabled"
	// ReasonNoWebhooks: no active Webhook takes the type.
	ReasonNoWebhooks = "NoWebhooks"
	// ReasonInactive: the Webhook is not active.
	ReasonInactive = "Inactive"
	// ReasonTypeDisabled: no WebhookEvent enables the type.
	ReasonTypeDisabled = "TypeDisabled"
)

// WebhookEventSpec switches a type of events on or off.
type WebhookEventSpec struct {
	// eventType is the type of events that is switched.
	// +required
	EventType EventType `json:"eventType,omitempty"`

	// enabled switches the type on. It is on when any WebhookEvent of the namespace says so.
	// +required
	Enabled *bool `json:"enabled,omitempty"`

	// description is for people.
	// +optional
	// +kubebuilder:validation:MaxLength=10000
	Description string `json:"description,omitempty"`

	// extensions holds what vendors or practices add, up to 16 KiB of JSON.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Extensions *runtime.RawExtension `json:"extensions,omitempty"`
}

// WebhookEventStatus is what the controller saw.
type WebhookEventStatus struct {
	// observedGeneration is the generation of the spec that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Accepted, Active.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// webhooks is how many active Webhooks take the type.
	// +optional
	Webhooks int32 `json:"webhooks"`
}

// WebhookEvent is the switch of one type of events in a site. The AHDS API serves it as
// webhook-event.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=paddock
// +kubebuilder:printcolumn:name="Event Type",type=string,JSONPath=`.spec.eventType`
// +kubebuilder:printcolumn:name="Enabled",type=boolean,JSONPath=`.spec.enabled`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].status`
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
