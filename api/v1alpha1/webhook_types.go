package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Signing says how deliveries are signed, in the terms of Standard Webhooks.
// +kubebuilder:validation:Enum=HMAC;Ed25519
type Signing string

const (
	// SigningHMAC signs with HMAC-SHA256 and a secret that the receiver has too (v1).
	SigningHMAC Signing = "HMAC"
	// SigningEd25519 signs with a private key; the receiver has the public one (v1a).
	SigningEd25519 Signing = "Ed25519"
)

// Ordering says whether deliveries keep the order of events.
// +kubebuilder:validation:Enum=None;PerSubject
type Ordering string

const (
	// OrderingNone delivers each event as soon as it can be.
	OrderingNone Ordering = "None"
	// OrderingPerSubject delivers an event after those before it of the same subject.
	OrderingPerSubject Ordering = "PerSubject"
)

const (
	// SecretTypeWebhook is the type of the Secrets that webhooks use; others are not read.
	SecretTypeWebhook = "paddock.health/webhook"
	// WebhookSecretKey holds the signing secret: whsec_… for HMAC, whsk_… for Ed25519.
	WebhookSecretKey = "secret"
)

// WebhookSpec is where events of a type go.
type WebhookSpec struct {
	// eventType is the type of events that the webhook takes.
	// +required
	EventType EventType `json:"eventType,omitempty"`

	// url is where to, by https.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != '' && !self.contains('#') && !self.matches('^https://[^/?]*@')",message="url must be an https URL with a host, without user and fragment"
	URL string `json:"url,omitempty"`

	// active switches the webhook on.
	// +required
	Active *bool `json:"active,omitempty"`

	// fields are the members of an event's data that are wanted. Default: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	Fields []string `json:"fields,omitempty"`

	// description is for people.
	// +optional
	// +kubebuilder:validation:MaxLength=10000
	Description string `json:"description,omitempty"`

	// extensions holds what vendors or practices add, up to 16 KiB of JSON.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Extensions *runtime.RawExtension `json:"extensions,omitempty"`

	// signing is how deliveries are to be signed.
	// +optional
	// +kubebuilder:default=HMAC
	Signing Signing `json:"signing,omitempty"`

	// secretRef names the Secret of type paddock.health/webhook whose key secret signs.
	// Default: one is made; status.secretName names it.
	// +optional
	SecretRef *WebhookSecretReference `json:"secretRef,omitempty"`

	// previousSecret still counts beside secretRef for a while after a rotation.
	// +optional
	PreviousSecret *PreviousWebhookSecret `json:"previousSecret,omitempty"`

	// headersSecretRef names a Secret of type paddock.health/webhook with more HTTP
	// header fields for deliveries, by their names.
	// +optional
	HeadersSecretRef *WebhookSecretReference `json:"headersSecretRef,omitempty"`

	// timeoutSeconds is how long the receiver may take to answer.
	// +optional
	// +kubebuilder:default=15
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// ordering says whether deliveries are to keep the order of events.
	// +optional
	// +kubebuilder:default=None
	Ordering Ordering `json:"ordering,omitempty"`
}

// WebhookSecretReference names a Secret of type paddock.health/webhook in the namespace.
type WebhookSecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// PreviousWebhookSecret is a signing secret that has been replaced.
type PreviousWebhookSecret struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// until is when it stops to count.
	// +required
	Until metav1.Time `json:"until,omitzero"`
}

// WebhookStatus is what the controller saw.
type WebhookStatus struct {
	// observedGeneration is the generation of the spec that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Accepted, Active.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// secretName names the Secret that signs.
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// publicKey is what receivers check signatures with: whpk_…. Only with signing Ed25519.
	// +optional
	PublicKey string `json:"publicKey,omitempty"`
}

// Webhook is an address to which a site sends events of one type. The AHDS API serves it as
// webhook.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=paddock
// +kubebuilder:printcolumn:name="Event Type",type=string,JSONPath=`.spec.eventType`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Active")].reason`
// +kubebuilder:printcolumn:name="Secret",type=string,priority=1,JSONPath=`.status.secretName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Webhook struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec WebhookSpec `json:"spec,omitzero"`
	// +optional
	Status WebhookStatus `json:"status,omitzero"`
}

// SecretName is the name of the Secret that signs: the one that the spec names, or the one
// that is made for a Webhook that names none.
func (w *Webhook) SecretName() string {
	if w.Spec.SecretRef != nil {
		return w.Spec.SecretRef.Name
	}
	return "webhook-" + string(w.UID)
}

// WebhookList is a list of Webhooks.
// +kubebuilder:object:root=true
type WebhookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Webhook `json:"items"`
}
