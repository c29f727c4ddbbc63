package deliveries

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

const (
	// maxDelivered is the maximum number of successful deliveries in the log of a webhook. At the
	// limit the oldest deliveries are dropped.
	maxDelivered = 200
	// maxDeliveredBytes is the maximum size of these deliveries as JSON (encode), in bytes, before
	// compression. At the limit the envelopes and responses of the oldest deliveries are dropped.
	maxDeliveredBytes = 512 << 10
)

// delivered is a successful delivery in a WebhookDeliveryLog.
type delivered struct {
	recordsv1.WebhookDeliverySpec `json:",inline"`
	// Text is the envelope of the event. It is empty if it was dropped.
	Text string `json:"text,omitempty"`
}

func (d *delivered) id() string { return delivery.DeliveryID(d.Event, d.Webhook) }

// ring is the content of the WebhookDeliveryLog of a webhook: its successful deliveries, the oldest
// first, and the state of its breaker.
type ring struct {
	// meta is the metadata of the WebhookDeliveryLog. Its name is empty before the log is created.
	meta  metav1.ObjectMeta
	done  []delivered
	state delivery.State
}

// readRing reads the log of a webhook. It returns an empty ring if there is none.
func readRing(ctx context.Context, client *objects.Client, namespace, key, webhook string) (*ring, error) {
	var obj recordsv1.WebhookDeliveryLog
	name := logName(webhook)
	err := client.Get(ctx, objects.Logs, namespace, name, &obj)
	if apierrors.IsNotFound(err) {
		return &ring{}, nil
	}
	if err != nil {
		return nil, objects.StoreError("read delivery log "+name, err)
	}
	if obj.Spec.SiteKey != key {
		return nil, fmt.Errorf("read delivery log %s/%s: its siteKey is that of another site; remove the WebhookDeliveryLog unless that site uses it", namespace, name)
	}
	return ringOf(&obj)
}

// ringOf decodes a WebhookDeliveryLog.
func ringOf(obj *recordsv1.WebhookDeliveryLog) (*ring, error) {
	r := &ring{meta: obj.ObjectMeta, state: delivery.State{
		Failures: int(obj.Spec.Failures), FailingSince: objects.FromMicro(obj.Spec.FailingSince),
		LastSuccess: objects.FromMicro(obj.Spec.LastSuccess), OpenUntil: objects.FromMicro(obj.Spec.OpenUntil),
	}}
	if len(obj.Spec.Delivered) == 0 {
		return r, nil
	}
	text, err := objects.Decompress(obj.Spec.Delivered)
	if err == nil {
		err = json.Unmarshal(text, &r.done)
	}
	if err != nil {
		return nil, fmt.Errorf("decode delivery log %s/%s: %w", obj.Namespace, obj.Name, err)
	}
	return r, nil
}

// write creates or replaces the WebhookDeliveryLog of a webhook. It fails with a conflict if the
// log has changed since it was read. Errors are those of the API server.
func (r *ring) write(ctx context.Context, client *objects.Client, namespace, key, webhook string) error {
	text, err := r.pack()
	if err != nil {
		return err
	}
	state := &r.state
	obj := &recordsv1.WebhookDeliveryLog{
		TypeMeta:   metav1.TypeMeta{APIVersion: recordsv1.GroupVersion.String(), Kind: "WebhookDeliveryLog"},
		ObjectMeta: metav1.ObjectMeta{Name: logName(webhook), Namespace: namespace, ManagedFields: objects.NoManagedFields},
		Spec: recordsv1.WebhookDeliveryLogSpec{
			SiteKey: key, Webhook: webhook, Failures: int32(state.Failures), FailingSince: objects.ToMicro(state.FailingSince),
			LastSuccess: objects.ToMicro(state.LastSuccess), OpenUntil: objects.ToMicro(state.OpenUntil),
			Count: int32(len(r.done)), Delivered: objects.Compress(text, nil),
		},
	}
	health, err := json.Marshal(healthSummary{
		SiteKey: key, Webhook: webhook, LastSuccess: obj.Spec.LastSuccess, FailingSince: obj.Spec.FailingSince,
	})
	if err != nil {
		return fmt.Errorf("encode the health of webhook %s: %w", webhook, err)
	}
	obj.Annotations = map[string]string{summaryAnnotation: string(health)}
	var meta metav1.ObjectMeta
	if r.meta.Name == "" {
		meta, err = client.Create(ctx, objects.Logs, namespace, obj)
	} else {
		obj.ResourceVersion, obj.UID = r.meta.ResourceVersion, r.meta.UID
		meta, err = client.Update(ctx, objects.Logs, namespace, obj.Name, obj)
	}
	if err == nil {
		r.meta = meta
	}
	return err
}

// healthSummary is the health of a webhook in the summaryAnnotation of its WebhookDeliveryLog.
type healthSummary struct {
	SiteKey      string            `json:"siteKey"`
	Webhook      string            `json:"webhook"`
	LastSuccess  *metav1.MicroTime `json:"lastSuccess,omitempty"`
	FailingSince *metav1.MicroTime `json:"failingSince,omitempty"`
}

// add adds a successful delivery. It replaces an earlier entry of the same delivery, of which it keeps the
// attempts, and drops the oldest deliveries beyond maxDelivered.
func (r *ring) add(d delivered) {
	if earlier := r.find(d.id()); earlier != nil {
		d.Attempts = mergeAttempts(d.Attempts, earlier.Attempts)
	}
	r.done = slices.DeleteFunc(r.done, func(old delivered) bool { return old.id() == d.id() })
	r.done = append(r.done, d)
	r.done = slices.Delete(r.done, 0, max(0, len(r.done)-maxDelivered))
}

// find returns the delivery with an id, or nil if the log does not have it.
func (r *ring) find(id string) *delivered {
	for i := range r.done {
		if r.done[i].id() == id {
			return &r.done[i]
		}
	}
	return nil
}

// pack returns the deliveries as JSON. It first drops the envelopes and responses of the oldest
// deliveries, until the rest is within maxDeliveredBytes or no envelope is left.
func (r *ring) pack() ([]byte, error) {
	texts, total := make([][]byte, len(r.done)), len("[]")
	for i := range r.done {
		var err error
		if texts[i], err = encode(&r.done[i]); err != nil {
			return nil, fmt.Errorf("encode delivery %s: %w", r.done[i].id(), err)
		}
		total += len(texts[i]) + len(",")
	}
	for i := 0; i < len(r.done) && total > maxDeliveredBytes; i++ {
		total -= len(texts[i])
		r.done[i].strip()
		var err error
		if texts[i], err = encode(&r.done[i]); err != nil {
			return nil, fmt.Errorf("encode delivery %s: %w", r.done[i].id(), err)
		}
		total += len(texts[i])
	}
	return slices.Concat([]byte("["), bytes.Join(texts, []byte(",")), []byte("]")), nil
}

// encode returns the JSON of a value. Unlike json.Marshal, it does not replace each of the
// characters <, > and & by an escape of six bytes.
func encode(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// strip removes the envelope and the responses.
func (d *delivered) strip() {
	d.Text = ""
	d.Attempts = slices.Clone(d.Attempts) // other rings and WebhookDeliveries may share the attempts
	for i := range d.Attempts {
		d.Attempts[i].Response = nil
	}
}
