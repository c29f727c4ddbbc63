package deliveries

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// attempt makes an attempt of a delivery and stores its result. It stores the result even if ctx
// ends during the attempt: late is the context of these writes.
func (q *queue) attempt(ctx, late context.Context, e *entry, target Target) {
	obj, err := q.due(ctx, e)
	if err != nil || obj == nil {
		q.postpone(ctx, e, "cannot read a delivery", err)
		return
	}
	event, err := eventOf(&obj.Spec)
	if obj.ResourceVersion == "" {
		event.Envelope = e.envelope
	}
	if err != nil {
		q.postpone(ctx, e, "cannot decode a delivery", err)
		return
	}
	outcome, err := target.Attempt(ctx, e.hook.id.webhook, event, int(obj.Spec.Scheduled))
	if err != nil {
		q.postpone(ctx, e, "cannot attempt a delivery", err)
		return
	}
	spec := &obj.Spec
	if outcome.Attempt.Reason != delivery.ReasonDisabled {
		addAttempt(spec, outcome.Attempt)
	}
	spec.LastReason = string(outcome.Attempt.Reason)
	spec.Status, spec.NextAttempt = statuses[outcome.Status], objects.ToMicro(outcome.Next)
	if outcome.Status != delivery.Pending {
		spec.Since, spec.NextAttempt = metav1.NewMicroTime(q.options.Clock.Now()), nil
	}
	q.mu.Lock()
	if outcome.Attempt.Reason != delivery.ReasonDisabled {
		e.hook.state = target.After(e.hook.state, outcome.Attempt)
	}
	if outcome.Status == delivery.Delivered {
		e.done = true
		e.hook.done = append(e.hook.done, &finished{entry: e, object: obj, text: string(event.Envelope)})
		q.endAttempt(e)
	}
	q.changeLog(ctx, late, e.hook)
	q.mu.Unlock()
	if outcome.Status != delivery.Delivered {
		q.settle(late, e, obj)
	}
}

// due returns the WebhookDelivery of an entry if its next attempt is due. Otherwise it returns nil,
// after it has updated or removed the entry.
func (q *queue) due(ctx context.Context, e *entry) (*recordsv1.WebhookDelivery, error) {
	q.mu.Lock()
	obj := e.object
	e.forgetObject()
	q.mu.Unlock()
	if obj != nil && obj == e.first {
		return obj.DeepCopy(), nil
	}
	if obj != nil {
		return obj, nil
	}
	obj = &recordsv1.WebhookDelivery{}
	err := q.client.Get(ctx, objects.Delivery, q.namespace, e.name, obj)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, objects.StoreError("read delivery "+e.name, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if logged := e.hook.ring.find(e.name); logged != nil {
		// An earlier process may have ended after it had logged a success and before it removed the
		// WebhookDelivery, which then lacks the last attempts.
		obj.Spec.Attempts = mergeAttempts(obj.Spec.Attempts, logged.Attempts)
	}
	next := objects.FromMicro(obj.Spec.NextAttempt)
	switch {
	case err != nil || obj.Spec.Status != recordsv1.DeliveryPending || obj.Spec.SiteKey != e.hook.id.key:
		q.remove(e)
		return nil, nil
	case next.After(q.options.Clock.Now()):
		e.next, e.resourceVersion = next, obj.ResourceVersion
		return nil, nil
	}
	return obj, nil
}

// postpone ends an attempt that has no result, or whose result cannot be stored because ctx has ended.
// If err is not nil, it logs the message, and the next attempt is due after closedDelay.
func (q *queue) postpone(ctx context.Context, e *entry, message string, err error) {
	if err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, message, "namespace", q.namespace, "webhook", e.hook.id.webhook, "delivery", e.name, "error", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		e.next = q.options.Clock.Now().Add(closedDelay)
	}
	q.endAttempt(e)
}

// settle stores the result of an attempt that did not succeed. If the delivery has no
// WebhookDelivery yet, settle creates it with the result. It retries until ctx ends.
func (q *queue) settle(ctx context.Context, e *entry, obj *recordsv1.WebhookDelivery) {
	e.creation.Lock()
	defer e.creation.Unlock()
	fresh := e.meta == nil
	for q.isClaimed(e) {
		err := q.create(ctx, e, obj)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			q.postpone(ctx, e, "", nil)
			return
		}
		slog.WarnContext(ctx, "cannot create a delivery; the server will retry", "namespace", q.namespace, "webhook", e.hook.id.webhook, "delivery", e.name, "error", err)
		q.sleep(ctx, retryDelay)
	}
	meta := e.meta
	e.meta = nil
	switch {
	case obj.ResourceVersion != "": // obj was read, or created by relayRecord
		q.store(ctx, e, obj)
	case meta == nil: // the WebhookDelivery exists in an unknown state, or was erased
		q.keepAttempts(ctx, obj)
		q.stored(e, obj, "", errUnknownState)
	case fresh:
		q.stored(e, obj, meta.ResourceVersion, nil)
	default:
		obj.ObjectMeta = *meta
		q.store(ctx, e, obj)
	}
}

var errUnknownState = errors.New("the state of the WebhookDelivery is unknown")

func (q *queue) isClaimed(e *entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return e.claim != nil
}

// store writes the result of an attempt that did not succeed to the WebhookDelivery. If another writer has
// changed the WebhookDelivery, store adds the attempt only. It retries until ctx ends.
func (q *queue) store(ctx context.Context, e *entry, obj *recordsv1.WebhookDelivery) {
	patch, err := changePatch(obj)
	var meta metav1.ObjectMeta
	for err == nil {
		meta, err = q.client.MergePatch(ctx, objects.Delivery, q.namespace, e.name, patch)
		if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || ctx.Err() != nil {
			break
		}
		slog.WarnContext(ctx, "cannot write a delivery; the server will retry", "namespace", q.namespace, "webhook", e.hook.id.webhook, "delivery", e.name, "error", err)
		q.sleep(ctx, retryDelay)
		err = nil
	}
	if apierrors.IsConflict(err) {
		q.keepAttempts(ctx, obj)
	}
	q.stored(e, obj, meta.ResourceVersion, err)
}

// keepAttempts adds the attempts of obj to its WebhookDelivery, which another writer has changed since obj
// was read, for example to repeat the delivery. The status and the schedule stay as that writer has set
// them. It retries until ctx ends, but not a change that kube-apiserver refuses as invalid or too large.
func (q *queue) keepAttempts(ctx context.Context, obj *recordsv1.WebhookDelivery) {
	for ctx.Err() == nil {
		err := q.addAttempts(ctx, obj)
		switch {
		case err == nil || apierrors.IsNotFound(err):
			return
		case apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
			slog.ErrorContext(ctx, "cannot add attempts to a delivery", "namespace", q.namespace, "webhook", obj.Spec.Webhook, "delivery", obj.Name, "error", err)
			return
		case !apierrors.IsConflict(err):
			slog.WarnContext(ctx, "cannot add attempts to a delivery; the server will retry", "namespace", q.namespace, "webhook", obj.Spec.Webhook, "delivery", obj.Name, "error", err)
			q.sleep(ctx, retryDelay)
		}
	}
}

// addAttempts adds the attempts of obj to the current state of its WebhookDelivery. Errors are those of the
// API server.
func (q *queue) addAttempts(ctx context.Context, obj *recordsv1.WebhookDelivery) error {
	var current recordsv1.WebhookDelivery
	if err := q.client.Get(ctx, objects.Delivery, q.namespace, obj.Name, &current); err != nil || current.Spec.SiteKey != obj.Spec.SiteKey {
		return err
	}
	merged := mergeAttempts(current.Spec.Attempts, obj.Spec.Attempts)
	if slices.EqualFunc(merged, current.Spec.Attempts, isSameAttempt) {
		return nil
	}
	current.Spec.Attempts = merged
	patch, err := changePatch(&current)
	if err == nil {
		_, err = q.client.MergePatch(ctx, objects.Delivery, q.namespace, obj.Name, patch)
	}
	return err
}

// stored updates an entry after the result of an attempt was stored, or, with an err, could not be
// stored.
func (q *queue) stored(e *entry, obj *recordsv1.WebhookDelivery, resourceVersion string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.object = nil
	switch {
	case err != nil: // The object was changed or deleted, or ctx ended. The next attempt reads it again.
		e.next = time.Time{}
	case obj.Spec.Status == recordsv1.DeliveryPending:
		e.next, e.resourceVersion = objects.FromMicro(obj.Spec.NextAttempt), resourceVersion
	default:
		q.remove(e)
	}
	q.endAttempt(e)
}
