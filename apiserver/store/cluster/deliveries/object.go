package deliveries

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// maxAttempts is the maximum number of attempts that a WebhookDelivery lists. At the limit the
// oldest one is dropped.
const maxAttempts = 20

// logName returns the name of the WebhookDeliveryLog of a webhook.
func logName(webhook string) string {
	sum := sha256.Sum256([]byte(webhook))
	return "webhook-" + hex.EncodeToString(sum[:20])
}

// newSpec returns the spec of a delivery of an event, with a first attempt that is due now.
func newSpec(key, webhook string, e store.AcceptedEvent, now time.Time) recordsv1.WebhookDeliverySpec {
	at := metav1.NewMicroTime(now)
	return recordsv1.WebhookDeliverySpec{
		SiteKey: key, Webhook: webhook, Event: e.ID, Type: e.Type, Subject: e.Subject, Sequence: e.Sequence,
		Accepted: metav1.NewMicroTime(e.Accepted), Restricted: e.Restricted, Envelope: objects.Compress(e.Envelope, nil),
		Status: recordsv1.DeliveryPending, Since: at, NextAttempt: &at,
	}
}

// newObject returns the WebhookDelivery with a spec. Its name depends only on the event and the
// webhook, so that creating it again fails.
func newObject(namespace string, spec recordsv1.WebhookDeliverySpec) (*recordsv1.WebhookDelivery, error) {
	obj := bareObject(namespace, spec)
	var err error
	obj.Annotations, err = annotate(&obj.Spec)
	return obj, err
}

// bareObject is newObject without the annotation.
func bareObject(namespace string, spec recordsv1.WebhookDeliverySpec) *recordsv1.WebhookDelivery {
	return &recordsv1.WebhookDelivery{
		TypeMeta:   metav1.TypeMeta{APIVersion: recordsv1.GroupVersion.String(), Kind: "WebhookDelivery"},
		ObjectMeta: metav1.ObjectMeta{Name: delivery.DeliveryID(spec.Event, spec.Webhook), Namespace: namespace, ManagedFields: objects.NoManagedFields},
		Spec:       spec,
	}
}

// eventOf returns the event of a delivery with its envelope.
func eventOf(spec *recordsv1.WebhookDeliverySpec) (store.AcceptedEvent, error) {
	e := store.AcceptedEvent{
		Sequence: spec.Sequence, Accepted: spec.Accepted.UTC(), ID: spec.Event, Type: spec.Type, Subject: spec.Subject,
		Targets: []string{spec.Webhook}, Restricted: spec.Restricted,
	}
	if len(spec.Envelope) > 0 {
		var err error
		if e.Envelope, err = objects.Decompress(spec.Envelope); err != nil {
			return e, fmt.Errorf("decompress the envelope of event %s: %w", spec.Event, err)
		}
	}
	return e, nil
}

// toDelivery returns the delivery of a spec, without the envelope of its event.
func toDelivery(spec *recordsv1.WebhookDeliverySpec) delivery.Delivery {
	d := delivery.Delivery{
		ID: delivery.DeliveryID(spec.Event, spec.Webhook), Webhook: spec.Webhook, Status: statusOf(spec.Status),
		Event: store.AcceptedEvent{
			Sequence: spec.Sequence, Accepted: spec.Accepted.UTC(), ID: spec.Event, Type: spec.Type, Subject: spec.Subject,
			Targets: []string{spec.Webhook}, Restricted: spec.Restricted,
		},
	}
	for i := range spec.Attempts {
		a := &spec.Attempts[i]
		d.Attempts = append(d.Attempts, delivery.Attempt{
			At: a.At.UTC(), Duration: time.Duration(a.Milliseconds) * time.Millisecond, StatusCode: int(a.StatusCode),
			Reason: delivery.Reason(a.Reason), Message: a.Message, Response: a.Response,
		})
	}
	if d.Status != delivery.Pending {
		d.Finished = spec.Since.UTC()
	} else if spec.NextAttempt != nil {
		d.NextAttempt = spec.NextAttempt.UTC()
	}
	return d
}

// addAttempt adds an attempt to a delivery and to the count of its schedule. It drops the oldest attempts
// beyond maxAttempts, and the response beyond delivery.MaxResponse.
func addAttempt(spec *recordsv1.WebhookDeliverySpec, a delivery.Attempt) {
	spec.Attempts = append(spec.Attempts, recordsv1.DeliveryAttempt{
		At: metav1.NewMicroTime(a.At), Milliseconds: a.Duration.Milliseconds(), StatusCode: int32(a.StatusCode),
		Reason: string(a.Reason), Message: a.Message, Response: a.Response[:min(len(a.Response), delivery.MaxResponse)],
	})
	spec.Attempts = spec.Attempts[max(0, len(spec.Attempts)-maxAttempts):]
	spec.Scheduled++
}

// mergeAttempts returns the attempts of a delivery that are in a or in b, each once, the oldest first. It
// drops the oldest attempts beyond maxAttempts.
func mergeAttempts(a, b []recordsv1.DeliveryAttempt) []recordsv1.DeliveryAttempt {
	merged := slices.Clone(a)
	for _, attempt := range b {
		if !slices.ContainsFunc(a, func(known recordsv1.DeliveryAttempt) bool { return isSameAttempt(known, attempt) }) {
			merged = append(merged, attempt)
		}
	}
	if len(merged) > len(a) {
		slices.SortStableFunc(merged, func(a, b recordsv1.DeliveryAttempt) int { return a.At.Compare(b.At.Time) })
	}
	return merged[max(0, len(merged)-maxAttempts):]
}

// isSameAttempt reports whether two attempts of a delivery have the same time. Attempts of a delivery do not
// overlap. Objects store times in microseconds.
func isSameAttempt(a, b recordsv1.DeliveryAttempt) bool { return a.At.UnixMicro() == b.At.UnixMicro() }

// reschedule makes a delivery pending, with a new schedule whose first attempt is due now.
func reschedule(spec *recordsv1.WebhookDeliverySpec, now time.Time) {
	at := metav1.NewMicroTime(now)
	spec.Status, spec.Since, spec.NextAttempt, spec.Scheduled = recordsv1.DeliveryPending, at, &at, 0
}

// statuses maps each status to its value in a WebhookDelivery, which is in CamelCase as in other
// Kubernetes objects.
var statuses = map[delivery.Status]recordsv1.DeliveryStatus{
	delivery.Pending:     recordsv1.DeliveryPending,
	delivery.Delivered:   recordsv1.DeliveryDelivered,
	delivery.Failed:      recordsv1.DeliveryFailed,
	delivery.Undelivered: recordsv1.DeliveryUndelivered,
}

func statusOf(status recordsv1.DeliveryStatus) delivery.Status {
	return delivery.Status(strings.ToLower(string(status)))
}
