package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
)

// ReportInterval is the interval at which KeepReporting reports the health of webhooks.
const ReportInterval = 30 * time.Second

// concurrentReports is the maximum number of namespaces whose health is read at the same time. A namespace
// whose database does not respond occupies one place for healthTimeout.
const (
	concurrentReports = 8
	healthTimeout     = ReportInterval / 3
)

// errChanged is returned if the settings of a webhook to disable have changed.
var errChanged = errors.New("the settings of the webhook have changed in the meantime")

// maxNote is the maximum length of an Event's note in bytes. Longer notes are cut. kube-apiserver
// allows 1024.
const maxNote = 1000

// maxFailure is the maximum length of the message of a failed attempt in a status, in bytes. Longer
// messages are cut.
const maxFailure = 512

// Disable implements delivery.Webhooks: it sets the condition Disabled and records an Event. It
// does not change a disabled webhook.
func (s site) Disable(ctx context.Context, webhook delivery.Webhook, cause delivery.Cause, message string) error {
	known, err := s.find(ctx, webhook.ID)
	if err != nil {
		return err
	}
	reason := map[delivery.Cause]string{delivery.CauseGone: v1alpha1.ReasonGone, delivery.CauseFailing: v1alpha1.ReasonFailing}[cause]
	hook, was := &v1alpha1.Webhook{}, false
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := s.live.Get(ctx, client.ObjectKeyFromObject(known), hook); err != nil {
			return err
		}
		if hook.UID != known.UID || hook.Generation != webhook.Generation {
			return errChanged
		}
		if was = hook.IsDisabled(); was {
			return nil
		}
		before := hook.DeepCopy()
		// Without this, a condition that is true already would keep its time of transition.
		meta.RemoveStatusCondition(&hook.Status.Conditions, v1alpha1.ConditionDisabled)
		meta.SetStatusCondition(&hook.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionDisabled, Status: metav1.ConditionTrue, Reason: reason, Message: message,
			ObservedGeneration: hook.Generation, LastTransitionTime: metav1.NewTime(s.options.Now()).Rfc3339Copy(),
		})
		return s.live.Status().Patch(ctx, hook, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(controller))
	})
	if err != nil {
		return fmt.Errorf("set the condition %s of Webhook %s/%s: %w", v1alpha1.ConditionDisabled, s.namespace, known.Name, err)
	}
	if !was {
		s.recorder.Eventf(hook, nil, corev1.EventTypeWarning, v1alpha1.ConditionDisabled, "Disable", "%s",
			truncate("the webhook is disabled: "+message, maxNote))
	}
	return nil
}

func truncate(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size > 0 && text[size]&0xc0 == 0x80 { // within a character of UTF-8
		size--
	}
	return text[:size]
}

// KeepReporting reports the health of all webhooks every ReportInterval until ctx ends. Only one
// process may run it at a time. health returns the health of the webhooks of a namespace by id, or
// nil if it is unknown.
func (t *Targets) KeepReporting(ctx context.Context, health func(ctx context.Context, namespace string) (map[string]delivery.Health, error)) {
	ticker := time.NewTicker(ReportInterval)
	defer ticker.Stop()
	defer t.backlog.keep(nil)
	for {
		if err := t.reportAll(ctx, health); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "cannot report the health of webhooks", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (t *Targets) reportAll(ctx context.Context, health func(ctx context.Context, namespace string) (map[string]delivery.Health, error)) error {
	list := &v1alpha1.WebhookList{}
	if err := t.hooks.List(ctx, list); err != nil {
		return fmt.Errorf("list the webhooks: %w", err)
	}
	namespaces := map[string]bool{}
	for i := range list.Items {
		namespaces[list.Items[i].Namespace] = true
	}
	t.backlog.keep(namespaces)
	names := slices.Collect(maps.Keys(namespaces))
	failed := make([]error, len(names))
	var group errgroup.Group
	group.SetLimit(concurrentReports)
	for i, namespace := range names {
		group.Go(func() error {
			limited, cancel := context.WithTimeout(ctx, healthTimeout)
			defer cancel()
			found, err := health(limited, namespace)
			if err == nil && found != nil {
				t.backlog.set(namespace, found)
				err = t.Report(ctx, namespace, found)
			}
			if err != nil {
				failed[i] = fmt.Errorf("namespace %s: %w", namespace, err)
			}
			return nil
		})
	}
	_ = group.Wait() // always nil
	return errors.Join(failed...)
}

// Report writes the health of a namespace's webhooks to their status where it has changed. The keys
// of health are the ids of webhooks in the AHDS API.
func (t *Targets) Report(ctx context.Context, namespace string, health map[string]delivery.Health) error {
	list := &v1alpha1.WebhookList{}
	if err := t.hooks.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list the webhooks of namespace %s: %w", namespace, err)
	}
	var failed []error
	for i := range list.Items {
		hook := &list.Items[i]
		patch, err := statusPatch(hook.Status, health[idOf(hook)])
		if err != nil {
			return err
		}
		if patch == nil {
			continue
		}
		err = t.live.Status().Patch(ctx, hook.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(controller))
		if client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("report the health of Webhook %s/%s: %w", namespace, hook.Name, err))
		}
	}
	return errors.Join(failed...)
}

// statusPatch returns a merge patch that updates the status, nil if the status is current.
func statusPatch(status v1alpha1.WebhookStatus, health delivery.Health) ([]byte, error) {
	lastSuccess, failingSince := seconds(health.LastSuccess), seconds(health.FailingSince)
	lastFailure := failureOf(health)
	if failingSince != nil && lastFailure == nil {
		lastFailure = status.LastFailure // the deliveries that AddLastFailures read have no failed attempt
	}
	if lastSuccess == nil {
		lastSuccess = status.LastSuccess // the log has removed the delivery
	}
	if status.Pending != nil && *status.Pending == health.Pending && lastSuccess.Equal(status.LastSuccess) && failingSince.Equal(status.FailingSince) &&
		ptr.Equal(lastFailure, status.LastFailure) {
		return nil, nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"pending": health.Pending, "lastSuccess": lastSuccess, "failingSince": failingSince, "lastFailure": lastFailure,
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the health of a webhook: %w", err)
	}
	return patch, nil
}

// failureOf returns the last failed attempt as the status has it, or nil without one. The message can
// contain what a receiver sent, so its length is limited.
func failureOf(health delivery.Health) *v1alpha1.WebhookFailure {
	if health.FailingSince.IsZero() || health.LastFailure.Reason == "" {
		return nil
	}
	message := truncate(strings.ToValidUTF8(health.LastFailure.Message, "\uFFFD"), maxFailure)
	return &v1alpha1.WebhookFailure{Reason: string(health.LastFailure.Reason), Message: message}
}

// seconds returns a time with the precision of Kubernetes, nil for the zero time.
func seconds(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	whole := metav1.NewTime(at).Rfc3339Copy()
	return &whole
}
