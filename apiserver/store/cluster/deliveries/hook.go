package deliveries

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// logInterval is the minimum time between two writes of the log of a webhook. The log is one
// object, and etcd keeps each of its states for minutes. Deliveries that succeed during the
// interval are written together. If the process crashes before that, they are sent again.
const logInterval = time.Second

// hookID identifies a webhook within a namespace, by the key of its site and its id.
type hookID struct{ key, webhook string }

// hook is the state of a webhook in a queue. The mu of the queue guards it.
type hook struct {
	id    hookID
	state delivery.State
	// ring is the log in the state that was last read or written.
	ring *ring
	// inFlight is the number of attempts in progress.
	inFlight int
	// done are the successful deliveries that are not in the log yet.
	done []*finished
	// changed reports whether the log must be written. writing reports whether writeLog is running.
	changed, writing bool
}

// finished is a successful delivery.
type finished struct {
	entry  *entry
	object *recordsv1.WebhookDelivery
	text   string
}

// unprovenRoom is the maximum number of concurrent attempts of a webhook whose last attempt failed, or
// that has had no successful attempt. With more, receivers that do not answer would occupy
// Options.PerSite until their breakers open.
const unprovenRoom = 2

// room returns the maximum number of concurrent attempts: most, unprovenRoom, or 1 if the webhook's
// breaker was opened and no attempt has succeeded since.
func (h *hook) room(most int) int {
	switch {
	case !h.state.OpenUntil.IsZero():
		return 1
	case h.state.LastSuccess.IsZero() || !h.state.FailingSince.IsZero():
		return min(most, unprovenRoom)
	default:
		return most
	}
}

// hook returns the state of a webhook. The first call for a webhook reads its log.
func (q *queue) hook(ctx context.Context, id hookID) (*hook, error) {
	q.mu.Lock()
	h := q.hooks[id]
	q.mu.Unlock()
	if h != nil {
		return h, nil
	}
	r, err := readRing(ctx, q.client, q.namespace, id.key, id.webhook)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if h = q.hooks[id]; h == nil {
		h = &hook{id: id, ring: r, state: r.state}
		q.hooks[id] = h
	}
	return h, nil
}

// changeLog marks the log of a webhook as changed, and starts writeLog unless it is running. The
// caller holds mu.
func (q *queue) changeLog(ctx, late context.Context, h *hook) {
	h.changed = true
	if !h.writing {
		h.writing = true
		q.attempts.Go(func() { q.writeLog(ctx, late, h) })
	}
}

// writeLog writes the log of a webhook until no change is left, and retries failed writes. After
// ctx has ended, it does not retry.
func (q *queue) writeLog(ctx, late context.Context, h *hook) {
	for {
		q.mu.Lock()
		if !h.changed {
			h.writing = false
			q.mu.Unlock()
			return
		}
		h.changed = false
		done, next := h.done, &ring{meta: h.ring.meta, done: append([]delivered(nil), h.ring.done...), state: h.state}
		h.done = nil
		q.mu.Unlock()
		for _, f := range done {
			spec := f.object.Spec
			spec.Envelope = nil
			next.add(delivered{WebhookDeliverySpec: spec, Text: f.text})
		}
		err := next.write(late, q.client, q.namespace, h.id.key, h.id.webhook)
		if err != nil {
			q.putBackLog(late, h, done, err)
			if ctx.Err() != nil {
				return
			}
			q.sleep(ctx, retryDelay)
			continue
		}
		q.mu.Lock()
		h.ring = next
		q.mu.Unlock()
		var removals sync.WaitGroup
		for _, f := range done {
			removals.Go(func() { q.finish(late, f) })
		}
		removals.Wait()
		q.sleep(ctx, logInterval)
	}
}

// putBackLog puts the deliveries of a failed write of the log back into the hook. If another writer has
// changed the log, putBackLog reads the log again.
func (q *queue) putBackLog(ctx context.Context, h *hook, done []*finished, failed error) {
	if ctx.Err() == nil {
		slog.WarnContext(ctx, "cannot write a delivery log; the server will retry", "namespace", q.namespace, "webhook", h.id.webhook, "error", failed)
	}
	var read *ring
	if apierrors.IsConflict(failed) || apierrors.IsAlreadyExists(failed) || apierrors.IsNotFound(failed) {
		read, _ = readRing(ctx, q.client, q.namespace, h.id.key, h.id.webhook)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if read != nil {
		h.ring = read
	}
	h.done = append(done, h.done...)
	h.changed = true
}

// finish deletes the WebhookDelivery, if there is one, of a successful delivery that is in the log. If
// the delivery was made pending again in the meantime, the WebhookDelivery stays, gets the attempts, and is
// sent again.
func (q *queue) finish(ctx context.Context, f *finished) {
	e := f.entry
	e.creation.Lock()
	defer e.creation.Unlock()
	meta := &f.object.ObjectMeta
	if meta.ResourceVersion == "" {
		meta = e.meta
	}
	if meta == nil && q.isClaimed(e) {
		q.finished(e, true)
		return
	}
	for ctx.Err() == nil {
		err := errUnknownState
		if meta != nil {
			err = q.delete(ctx, meta)
		}
		if err == nil || apierrors.IsConflict(err) || errors.Is(err, errUnknownState) {
			if err != nil {
				q.keepAttempts(ctx, f.object)
			}
			q.finished(e, err == nil)
			return
		}
		slog.WarnContext(ctx, "cannot delete a successful delivery; the server will retry", "namespace", q.namespace, "webhook", e.hook.id.webhook, "delivery", f.object.Name, "error", err)
		q.sleep(ctx, retryDelay)
	}
}

// delete deletes a WebhookDelivery in a known state.
func (q *queue) delete(ctx context.Context, meta *metav1.ObjectMeta) error {
	q.removals <- struct{}{}
	defer func() { <-q.removals }()
	return q.client.Delete(ctx, objects.Delivery, q.namespace, meta.Name, meta)
}

// finished removes an entry whose delivery has succeeded and is in the log. If gone is false, its
// WebhookDelivery has changed since, and the next attempt reads it. The caller holds e.creation.
func (q *queue) finished(e *entry, gone bool) {
	q.unclaim(e, "")
	q.mu.Lock()
	defer q.mu.Unlock()
	if gone {
		q.remove(e)
		return
	}
	e.done, e.next = false, time.Time{}
	signal(q.wakeDispatch)
}
