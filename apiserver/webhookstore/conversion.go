package webhookstore

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/ahds/fielderror"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
)

// kind converts between custom resources of one kind and resources of the AHDS API.
type kind struct {
	// resource is the plural name of the kind, as in paths.
	resource string
	object   func() client.Object
	list     func() client.ObjectList
	// read sets the content, the public key, the disabled state, and until when the previous secret
	// signs.
	read func(from client.Object, to *webhook.Resource) error
	// write sets the fields of an object from a content. Other fields stay unchanged. Errors:
	// fielderror.Errors if the fields that stay do not allow the content.
	write func(from schema.Content, to client.Object) error
}

var events = kind{
	resource: "webhookevents",
	object:   func() client.Object { return &v1alpha1.WebhookEvent{} },
	list:     func() client.ObjectList { return &v1alpha1.WebhookEventList{} },
	read: func(from client.Object, to *webhook.Resource) error {
		event, ok := from.(*v1alpha1.WebhookEvent)
		if !ok {
			return wrongType(from)
		}
		to.Content = schema.Content{
			"eventType": quoted(string(event.Spec.EventType)), "isEnabled": boolean(event.Spec.Enabled),
			"description": quoted(event.Spec.Description), "extensions": extensionsOf(event.Spec.Extensions),
		}
		return nil
	},
	write: func(from schema.Content, to client.Object) error {
		event, ok := to.(*v1alpha1.WebhookEvent)
		if !ok {
			return wrongType(to)
		}
		enabled := from.Bool("isEnabled")
		event.Spec.EventType, event.Spec.Enabled = v1alpha1.EventType(from.Text("eventType")), &enabled
		event.Spec.Description, event.Spec.Extensions = from.Text("description"), extensions(from, event.Spec.Extensions)
		return nil
	},
}

var webhooks = kind{
	resource: "webhooks",
	object:   func() client.Object { return &v1alpha1.Webhook{} },
	list:     func() client.ObjectList { return &v1alpha1.WebhookList{} },
	read:     readWebhook,
	write: func(from schema.Content, to client.Object) error {
		hook, ok := to.(*v1alpha1.Webhook)
		if !ok {
			return wrongType(to)
		}
		var fields []string
		if err := json.Unmarshal(from["fields"], &fields); err != nil {
			return fmt.Errorf("decode the fields of a webhook: %w", err)
		}
		if len(fields) == 0 {
			fields = nil
		}
		if err := keepsReceiver(hook, from.Text("webhookUrl")); err != nil {
			return err
		}
		active := from.Bool("isActive")
		hook.Spec.EventType, hook.Spec.URL, hook.Spec.Active = v1alpha1.EventType(from.Text("eventType")), from.Text("webhookUrl"), &active
		hook.Spec.Clearance = v1alpha1.ClearanceNormal
		if from.Text("clearance") == webhook.ClearancePrivileged {
			hook.Spec.Clearance = v1alpha1.ClearancePrivileged
		}
		hook.Spec.Fields, hook.Spec.Description = fields, from.Text("description")
		hook.Spec.Extensions = extensions(from, hook.Spec.Extensions)
		return nil
	},
}

// keepsReceiver returns an error if the webhook has header fields from a Secret and url is not its
// current URL. The Secret is for that receiver, and clients of the AHDS API can neither read nor
// replace it. Another path or query is refused too: servers can belong to several tenants, forward by
// a query, or return the header fields in a response, which the delivery log shows. Errors:
// fielderror.Errors.
func keepsReceiver(hook *v1alpha1.Webhook, url string) error {
	if hook.Spec.HeadersSecretRef == nil || url == hook.Spec.URL {
		return nil
	}
	return fielderror.Errors{{
		At: "/webhookUrl", Code: fielderror.CodeInvalidValue,
		Detail: "the webhook sends header fields from a Secret (headersSecretRef) to its current URL, so this API does not change the URL; change spec.url of the Webhook " +
			hook.Name + " with kubectl, or remove its headersSecretRef first",
	}}
}

func readWebhook(from client.Object, to *webhook.Resource) error {
	hook, ok := from.(*v1alpha1.Webhook)
	if !ok {
		return wrongType(from)
	}
	fields := jsontext.Value("[]")
	if len(hook.Spec.Fields) > 0 {
		fields = jsontext.Value{'['}
		for i, name := range hook.Spec.Fields {
			if i > 0 {
				fields = append(fields, ',')
			}
			fields = append(fields, quoted(name)...)
		}
		fields = append(fields, ']')
	}
	to.Content = schema.Content{
		"eventType": quoted(string(hook.Spec.EventType)), "webhookUrl": quoted(hook.Spec.URL), "isActive": boolean(hook.Spec.Active),
		"fields": fields, "description": quoted(hook.Spec.Description), "extensions": extensionsOf(hook.Spec.Extensions),
	}
	if hook.Spec.Clearance == v1alpha1.ClearancePrivileged {
		to.Content["clearance"] = quoted(webhook.ClearancePrivileged)
	}
	to.PublicKey = hook.Status.PublicKey
	if previous := hook.Spec.PreviousSecret; previous != nil {
		to.PreviousUntil = previous.Until.Time
	}
	if hook.IsDisabled() {
		to.DisabledAt = disabledAt(hook)
		to.DisabledReason = meta.FindStatusCondition(hook.Status.Conditions, v1alpha1.ConditionDisabled).Message
	}
	return nil
}

// disabledAt returns when the server disabled a Webhook. The Webhook must be disabled.
func disabledAt(hook *v1alpha1.Webhook) time.Time {
	return meta.FindStatusCondition(hook.Status.Conditions, v1alpha1.ConditionDisabled).LastTransitionTime.Time
}

func wrongType(object client.Object) error {
	return fmt.Errorf("convert %s/%s: unexpected type %T", object.GetNamespace(), object.GetName(), object)
}

func quoted(text string) jsontext.Value {
	value, _ := jsontext.AppendQuote(nil, text) // bad UTF-8 is written as U+FFFD
	return value
}

func boolean(is *bool) jsontext.Value {
	return strconv.AppendBool(nil, is != nil && *is)
}

func extensionsOf(raw *runtime.RawExtension) jsontext.Value {
	if raw == nil || len(raw.Raw) == 0 {
		return jsontext.Value("{}")
	}
	return jsontext.Value(raw.Raw)
}

// extensions returns the extensions of a content for a spec. It returns nil if they are empty and
// the spec had none before.
func extensions(from schema.Content, before *runtime.RawExtension) *runtime.RawExtension {
	value := from["extensions"].Clone()
	if err := value.Compact(); err == nil && before == nil && string(value) == "{}" {
		return nil
	}
	return &runtime.RawExtension{Raw: value}
}
