package certificate

import (
	"context"
	"encoding/base64"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/controllers/apply"
)

// register sets the CA bundle in the objects by which kube-apiserver calls a server.
func (k *Keeper) register(ctx context.Context, serving Serving, bundle []byte) error {
	if serving.APIService != "" {
		if err := k.registerAPIService(ctx, serving.APIService, bundle); err != nil {
			return err
		}
	}
	if serving.ValidatingWebhooks != "" {
		return k.registerWebhooks(ctx, serving.ValidatingWebhooks, bundle)
	}
	return nil
}

func (k *Keeper) registerAPIService(ctx context.Context, name string, bundle []byte) error {
	service := &apiregistrationv1.APIService{}
	switch err := k.Live.Get(ctx, client.ObjectKey{Name: name}, service); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read APIService %s: %w", name, err)
	case string(service.Spec.CABundle) == string(bundle):
		return nil
	}
	return k.applyTo(ctx, service, apiregistrationv1.SchemeGroupVersion.WithKind("APIService"), map[string]any{
		"spec": map[string]any{"caBundle": base64.StdEncoding.EncodeToString(bundle)},
	})
}

func (k *Keeper) registerWebhooks(ctx context.Context, name string, bundle []byte) error {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	switch err := k.Live.Get(ctx, client.ObjectKey{Name: name}, configuration); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read ValidatingWebhookConfiguration %s: %w", name, err)
	}
	known := true
	var webhooks []any
	for _, webhook := range configuration.Webhooks {
		known = known && string(webhook.ClientConfig.CABundle) == string(bundle)
		webhooks = append(webhooks, map[string]any{
			"name": webhook.Name, "clientConfig": map[string]any{"caBundle": base64.StdEncoding.EncodeToString(bundle)},
		})
	}
	if known {
		return nil
	}
	return k.applyTo(ctx, configuration, admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), map[string]any{
		"webhooks": webhooks,
	})
}

// applyTo applies fields to an object that was read. It does not create the object if it no longer
// exists.
func (k *Keeper) applyTo(ctx context.Context, read client.Object, kind schema.GroupVersionKind, fields map[string]any) error {
	config := &unstructured.Unstructured{Object: fields}
	config.SetGroupVersionKind(kind)
	config.SetName(read.GetName())
	config.SetUID(read.GetUID())
	if err := k.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), apply.FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write %s %s: %w", kind.Kind, read.GetName(), err)
	}
	return nil
}
