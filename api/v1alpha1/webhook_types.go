package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Signing is the signature scheme of deliveries, as defined by Standard Webhooks.
// +kubebuilder:validation:Enum=HMAC;Ed25519
type Signing string

const (
	// SigningHMAC signs with HMAC-SHA256 and a secret that the receiver also has (v1 of Standard
	// Webhooks).
	SigningHMAC Signing = "HMAC"
	// SigningEd25519 signs with a private Ed25519 key. The receiver has the public key (v1a of
	// Standard Webhooks).
	SigningEd25519 Signing = "Ed25519"
)

// Ordering selects the order of deliveries.
// +kubebuilder:validation:Enum=None;PerSubject
type Ordering string

const (
	// OrderingNone delivers each event as soon as possible.
	OrderingNone Ordering = "None"
	// OrderingPerSubject delivers an event after the deliveries of the earlier events of the same
	// subject have ended.
	OrderingPerSubject Ordering = "PerSubject"
)

// Clearance selects which records' data a webhook receives.
// +kubebuilder:validation:Enum=Normal;Privileged
type Clearance string

const (
	// ClearanceNormal withholds from a webhook the data of records that privacy rules hide or that have the
	// confidentiality R or V.
	ClearanceNormal Clearance = "Normal"
	// ClearancePrivileged gives a webhook the data of all records.
	ClearancePrivileged Clearance = "Privileged"
)

const (
	// SecretTypeWebhook is the type of the Secrets of webhooks. Secrets of other types are not read.
	SecretTypeWebhook = "paddock.health/webhook"
	// WebhookSecretKey is the key in the data of a Secret that has the signing secret: whsec_… for
	// HMAC, whsk_… for Ed25519.
	WebhookSecretKey = "secret"
	// WebhookCertificateKey is the key in the data of a Secret that has the client certificate,
	// PEM-encoded.
	WebhookCertificateKey = "tls.crt"
	// WebhookPrivateKeyKey is the key in the data of a Secret that has the private key of the client
	// certificate, PEM-encoded.
	WebhookPrivateKeyKey = "tls.key"
)

// EnabledAtAnnotation enables a Webhook that the delivery process disabled. Its value is a time in
// RFC 3339. The annotation has an effect only if that time is later than the last transition of the
// condition Disabled. A change of the spec also enables the Webhook.
const EnabledAtAnnotation = "paddock.health/enabled-at"

// ConditionDisabled is true if the delivery process disabled the Webhook. Deliveries to a disabled
// Webhook get the status Undelivered. The condition may be out of date: see Webhook.IsDisabled.
const ConditionDisabled = "Disabled"

// Reasons of the Disabled condition.
const (
	// ReasonGone means that the receiver responded with the status 410.
	ReasonGone = "Gone"
	// ReasonFailing means that deliveries to a Webhook fail. As a reason of the condition Disabled,
	// it means that all attempts have failed for five days.
	ReasonFailing = "Failing"
	// ReasonEnabled means that the Webhook was disabled and then enabled again.
	ReasonEnabled = "Enabled"
)

// ReasonInvalidCABundle is a reason of the Accepted condition. It means that caBundle has no valid
// certificates.
const ReasonInvalidCABundle = "InvalidCABundle"

// WebhookSpec selects the events that a webhook receives, and where and how they are delivered.
type WebhookSpec struct {
	// eventType is the type of the events that the webhook receives.
	// +required
	EventType EventType `json:"eventType,omitempty"`

	// url is the https URL that events are sent to. Its port, if it has one, is 1 to 65535.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != '' && !self.contains('#') && !self.matches('^https://[^/?]*@')",message="url must be an https URL with a host, without user and fragment"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getPort() == '' || double(url(self).getPort()) >= 1.0 && double(url(self).getPort()) <= 65535.0",message="the port of url must be 1 to 65535"
	URL string `json:"url,omitempty"`

	// active is true if the webhook receives events. If active is false, no events are sent.
	// +required
	Active *bool `json:"active,omitempty"`

	// fields are the names of the members of an event's data that are sent, at most 64. Default: all
	// members.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	Fields []string `json:"fields,omitempty"`

	// clearance selects which data the webhook receives. Normal omits the data of records that
	// privacy rules of the Site hide or that have the confidentiality R or V. Privileged sends all
	// data. Writing a Webhook with Privileged requires the verb privileged on all resources of
	// r4.fhir.paddock.health in the namespace. Default: Normal.
	// +optional
	// +kubebuilder:default=Normal
	Clearance Clearance `json:"clearance,omitempty"`

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

	// signing is the signature scheme of deliveries. Default: HMAC.
	// +optional
	// +kubebuilder:default=HMAC
	Signing Signing `json:"signing,omitempty"`

	// secretRef names the Secret of type paddock.health/webhook whose key "secret" has the signing
	// secret. If unset, the controller creates a Secret, which status.secretName names.
	// +optional
	SecretRef *WebhookSecretReference `json:"secretRef,omitempty"`

	// previousSecret names the Secret that the last rotation replaced. Before previousSecret.until,
	// deliveries are signed with both this and the current signing secret. If unset, deliveries have
	// one signature.
	// +optional
	PreviousSecret *PreviousWebhookSecret `json:"previousSecret,omitempty"`

	// headersSecretRef names a Secret of type paddock.health/webhook with additional HTTP header
	// fields for deliveries. Each key is a field name. Default: no additional header fields.
	// +optional
	HeadersSecretRef *WebhookSecretReference `json:"headersSecretRef,omitempty"`

	// caBundle holds the PEM certificates of the authorities that are trusted to sign the receiver's
	// certificate, at most 128 KiB. Default: the authorities that the operating system trusts.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=131072
	CABundle []byte `json:"caBundle,omitempty"`

	// clientCertificateSecretRef names a Secret of type paddock.health/webhook. Its keys tls.crt and
	// tls.key are the client certificate for the receiver. Default: no client certificate.
	// +optional
	ClientCertificateSecretRef *WebhookSecretReference `json:"clientCertificateSecretRef,omitempty"`

	// retry is the schedule of retries of a failed delivery. Default: delays of 5 s, 5 min, 30 min,
	// 2 h, 5 h, 10 h, 14 h, 20 h and 24 h.
	// +optional
	Retry *WebhookRetry `json:"retry,omitempty"`

	// timeoutSeconds is the maximum duration of an attempt, from the connection to the end of the
	// response, 1 to 30 seconds. A longer attempt fails. Default: 15.
	// +optional
	// +kubebuilder:default=15
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// ordering selects the order of deliveries. None delivers each event as soon as possible.
	// PerSubject delivers the events of each subject in order. Default: None.
	// +optional
	// +kubebuilder:default=None
	Ordering Ordering `json:"ordering,omitempty"`
}

// WebhookRetry is the schedule of retries of a failed delivery.
type WebhookRetry struct {
	// delaysSeconds are the delays in seconds before each retry, at most 20 values of 1 to 86400.
	// Each delay is varied at random by up to 20 %. The delivery fails when the last retry fails. An
	// empty list means no retry.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=86400
	DelaysSeconds []int32 `json:"delaysSeconds,omitzero"`
}

// WebhookSecretReference names a Secret of type paddock.health/webhook in the Webhook's namespace.
type WebhookSecretReference struct {
	// name is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// PreviousWebhookSecret names the Secret of a signing secret that has been replaced.
type PreviousWebhookSecret struct {
	// name is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// until is the time from which deliveries are no longer signed with the replaced signing secret.
	// +required
	Until metav1.Time `json:"until,omitzero"`
}

// WebhookStatus is the observed state of a Webhook and its deliveries.
type WebhookStatus struct {
	// observedGeneration is the metadata.generation that the conditions were computed for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the conditions of the Webhook, of the types Accepted, Active, Delivering and
	// Disabled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// secretName is the name of the Secret with the signing secret.
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// publicKey is the key with which receivers verify signatures: whpk_…. It is set only with
	// signing Ed25519.
	// +optional
	PublicKey string `json:"publicKey,omitempty"`

	// lastSuccess is when the receiver last responded to an event with 2xx.
	// +optional
	LastSuccess *metav1.Time `json:"lastSuccess,omitempty"`

	// pending is the number of deliveries that have not ended: their next attempt is due or
	// scheduled. The field is unset until the delivery process first reports.
	// +optional
	Pending *int64 `json:"pending,omitempty"`

	// failingSince is the time of the first failed attempt after lastSuccess. It is unset after a
	// success.
	// +optional
	FailingSince *metav1.Time `json:"failingSince,omitempty"`

	// lastFailure is the result of the last failed attempt, as of the last report of the delivery
	// process, which reports every 30 seconds. It is unset after a success.
	// +optional
	LastFailure *WebhookFailure `json:"lastFailure,omitempty"`
}

// WebhookFailure is why an attempt to deliver an event failed.
type WebhookFailure struct {
	// reason is the stable code of the result, such as certificate or timeout.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message describes the result, at most 512 bytes. A longer text is cut.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// Webhook is a subscription to the events of one type: the site sends these events to a URL. The AHDS
// API serves it as the resource webhook.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=paddock
// +kubebuilder:printcolumn:name="Event Type",type=string,JSONPath=`.spec.eventType`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].status`
// +kubebuilder:printcolumn:name="Last Success",type=date,JSONPath=`.status.lastSuccess`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.pending`
// +kubebuilder:printcolumn:name="Failing Since",type=date,JSONPath=`.status.failingSince`
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

// SecretName returns the name of the Secret with the signing secret: that of spec.secretRef, or the
// Secret that the controller creates if spec.secretRef is unset.
func (w *Webhook) SecretName() string {
	if w.Spec.SecretRef != nil {
		return w.Spec.SecretRef.Name
	}
	return "webhook-" + string(w.UID)
}

// IsDisabled reports whether the delivery process disabled the Webhook, and no change of the spec
// or of EnabledAtAnnotation has enabled it since.
func (w *Webhook) IsDisabled() bool {
	disabled := meta.FindStatusCondition(w.Status.Conditions, ConditionDisabled)
	return disabled != nil && disabled.Status == metav1.ConditionTrue &&
		disabled.ObservedGeneration == w.Generation && !w.EnabledAt().After(disabled.LastTransitionTime.Time)
}

// EnabledAt returns the time of EnabledAtAnnotation, or the zero time if the annotation is missing or
// invalid.
func (w *Webhook) EnabledAt() time.Time {
	at, err := time.Parse(time.RFC3339, w.Annotations[EnabledAtAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// WebhookList is a list of Webhooks.
// +kubebuilder:object:root=true
type WebhookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Webhook `json:"items"`
}
