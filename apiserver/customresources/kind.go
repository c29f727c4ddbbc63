package customresources

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
)

// kind translates between the objects of one kind and what the facade has.
type kind struct {
	// resource is the name in the API's paths.
	resource string
	object   func() client.Object
	list     func() client.ObjectList
	// read adds to a resource what the object says.
	read func(from client.Object, to *webhook.Resource) error
	// write makes an object say what a content does. Other settings stay as they are.
	write func(from document.Content, to client.Object) error
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
		to.Content = document.Content{
			"eventType": quoted(string(event.Spec.EventType)), "isEnabled": boolean(event.Spec.Enabled),
			"description": quoted(event.Spec.Description), "extensions": extensionsOf(event.Spec.Extensions),
		}
		return nil
	},
	write: func(from document.Content, to client.Object) error {
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
	write: func(from document.Content, to client.Object) error {
		hook, ok := to.(*v1alpha1.Webhook)
		if !ok {
			return wrongType(to)
		}
		var fields []string
		if err := json.Unmarshal(from["fields"], &fields); err != nil {
			return fmt.Errorf("read the names of fields: %w", err)
		}
		if len(fields) == 0 {
			fields = nil
		}
		active := from.Bool("isActive")
		hook.Spec.EventType, hook.Spec.URL, hook.Spec.Active = v1alpha1.EventType(from.Text("eventType")), from.Text("webhookUrl"), &active
		hook.Spec.Fields, hook.Spec.Description = fields, from.Text("description")
		hook.Spec.Extensions = extensions(from, hook.Spec.Extensions)
		return nil
	},
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
	to.Content = document.Content{
		"eventType": quoted(string(hook.Spec.EventType)), "webhookUrl": quoted(hook.Spec.URL), "isActive": boolean(hook.Spec.Active),
		"fields": fields, "description": quoted(hook.Spec.Description), "extensions": extensionsOf(hook.Spec.Extensions),
	}
	to.PublicKey = hook.Status.PublicKey
	if previous := hook.Spec.PreviousSecret; previous != nil {
		to.PreviousUntil = previous.Until.Time
	}
	return nil
}

func wrongType(object client.Object) error { return fmt.Errorf("%T is of another kind", object) }

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

// extensions is what a content's extensions are in a spec: nothing, where they are empty
// and were nothing before.
func extensions(from document.Content, before *runtime.RawExtension) *runtime.RawExtension {
	value := from["extensions"].Clone()
	if err := value.Compact(); err == nil && before == nil && string(value) == "{}" {
		return nil
	}
	return &runtime.RawExtension{Raw: value}
}
