package targets

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/events/signing"
	"github.com/paddock-health/paddock/apiserver/store"
)

// defaultTimeout is the timeout of Webhooks that were created before the CRD had a default.
const defaultTimeout = 15 * time.Second

// cacheDelay is more than the time by which the cache of Webhooks falls behind kube-apiserver.
const cacheDelay = time.Minute

// Webhook implements delivery.Webhooks. An event is accepted only for an active webhook. So if the
// cache has no active webhook for an event that was accepted recently, the cache may be outdated, and
// Webhook reads from kube-apiserver.
func (s site) Webhook(ctx context.Context, id string, accepted time.Time) (delivery.Webhook, error) {
	hook, err := s.find(ctx, id)
	isRecent := s.options.Now().Sub(accepted) < cacheDelay
	if isRecent && (errors.Is(err, store.ErrNotFound) || err == nil && !isActive(hook)) {
		hook, err = s.findLive(ctx, id)
	}
	if err != nil {
		return delivery.Webhook{}, err
	}
	settings := settingsOf(hook)
	if settings.Disabled != "" {
		return settings, nil
	}
	err = s.addSecrets(ctx, hook, &settings)
	var problem *secretError
	switch {
	case errors.As(err, &problem):
		return delivery.Webhook{}, &delivery.SecretError{Webhook: settings, Problem: problem.text}
	case err != nil:
		return delivery.Webhook{}, err
	}
	return settings, nil
}

func isActive(hook *v1alpha1.Webhook) bool { return hook.Spec.Active != nil && *hook.Spec.Active }

// settingsOf returns the settings without the content of Secrets.
func settingsOf(hook *v1alpha1.Webhook) delivery.Webhook {
	changed, _ := v1alpha1.ChangedAt(hook)
	if enabled := hook.EnabledAt(); enabled.After(changed) {
		changed = enabled
	}
	settings := delivery.Webhook{
		ID: idOf(hook), Generation: hook.Generation, URL: hook.Spec.URL, Fields: hook.Spec.Fields,
		Cleared:  hook.Spec.Clearance == v1alpha1.ClearancePrivileged,
		CABundle: hook.Spec.CABundle, Delays: delivery.DefaultDelays, Timeout: defaultTimeout, Changed: changed,
	}
	if retry := hook.Spec.Retry; retry != nil {
		settings.Delays = make([]time.Duration, len(retry.DelaysSeconds))
		for i, seconds := range retry.DelaysSeconds {
			settings.Delays[i] = time.Duration(seconds) * time.Second
		}
	}
	if hook.Spec.TimeoutSeconds > 0 {
		settings.Timeout = time.Duration(hook.Spec.TimeoutSeconds) * time.Second
	}
	if since := hook.Status.FailingSince; since != nil {
		settings.FailingSince = since.Time
	}
	switch {
	case !isActive(hook):
		settings.Disabled = "the webhook is not active; set active to true to send events"
	case hook.IsDisabled():
		settings.Disabled = "the webhook was disabled: " + meta.FindStatusCondition(hook.Status.Conditions, v1alpha1.ConditionDisabled).Message
	}
	return settings
}

// addSecrets adds the content of Secrets to settings. Errors: those of handedOver, *secretError.
func (s site) addSecrets(ctx context.Context, hook *v1alpha1.Webhook, settings *delivery.Webhook) error {
	data, err := s.handedOver(ctx, hook) // secrets.go
	if err != nil {
		return err
	}
	current, err := signing.ParseKey(string(data[v1alpha1.WebhookSecretKey]))
	if err != nil {
		return &secretError{fmt.Sprintf("the Secret of the webhook has no valid signing key: %v", err)}
	}
	settings.Keys = []signing.Key{current}
	if previous := hook.Spec.PreviousSecret; previous != nil && s.options.Now().Before(previous.Until.Time) {
		// An invalid previous key is ignored, because the current key signs too.
		if key, err := signing.ParseKey(string(data[v1alpha1.WebhookPreviousSecretKey])); err == nil {
			settings.Keys = append(settings.Keys, key)
		}
	}
	settings.Header = v1alpha1.HeaderFields(data)
	if hook.Spec.ClientCertificateSecretRef != nil {
		pair, err := tls.X509KeyPair(data[v1alpha1.WebhookCertificateKey], data[v1alpha1.WebhookPrivateKeyKey])
		if err != nil {
			return &secretError{fmt.Sprintf("clientCertificateSecretRef: tls.crt and tls.key of Secret %s are not a certificate and its private key: %v; correct their values", hook.Spec.ClientCertificateSecretRef.Name, err)}
		}
		settings.ClientCertificate = &pair
	}
	return nil
}
