package deliveries

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
)

// summaryAnnotation is the annotation with the summary of a WebhookDelivery, or the healthSummary
// of a WebhookDeliveryLog. Lists and watches of metadata have it, but no envelopes.
const summaryAnnotation = "records.paddock.health/delivery"

// summary is a part of the spec of a WebhookDelivery. Times are in milliseconds since 1970.
type summary struct {
	SiteKey  string                   `json:"siteKey"`
	Webhook  string                   `json:"webhook"`
	Subject  string                   `json:"subject,omitempty"`
	Sequence int64                    `json:"sequence"`
	Accepted int64                    `json:"accepted"`
	Status   recordsv1.DeliveryStatus `json:"status"`
	Since    int64                    `json:"since"`
	Next     int64                    `json:"next,omitempty"`
}

func summarize(spec *recordsv1.WebhookDeliverySpec) summary {
	s := summary{
		SiteKey: spec.SiteKey, Webhook: spec.Webhook, Subject: spec.Subject, Sequence: spec.Sequence,
		Accepted: spec.Accepted.UnixMilli(), Status: spec.Status, Since: spec.Since.UnixMilli(),
	}
	if spec.NextAttempt != nil {
		s.Next = spec.NextAttempt.UnixMilli()
	}
	return s
}

// annotate returns the annotations of a WebhookDelivery: its summary.
func annotate(spec *recordsv1.WebhookDeliverySpec) (map[string]string, error) {
	text, err := json.Marshal(summarize(spec))
	if err != nil {
		return nil, fmt.Errorf("encode the summary of a delivery of event %s to webhook %s: %w", spec.Event, spec.Webhook, err)
	}
	return map[string]string{summaryAnnotation: string(text)}, nil
}

// summaryOf reads the summary of a WebhookDelivery. It returns false, and logs a warning, if the summary cannot be
// decoded.
func summaryOf(meta *metav1.PartialObjectMetadata) (s summary, ok bool) {
	err := json.Unmarshal([]byte(meta.Annotations[summaryAnnotation]), &s)
	if err != nil {
		slog.Warn("cannot read the summary of a WebhookDelivery, which another program may have changed; the server ignores the WebhookDelivery", "namespace", meta.Namespace, "delivery", meta.Name, "annotation", summaryAnnotation, "error", err)
	}
	return s, err == nil
}

func (s *summary) accepted() time.Time { return time.UnixMilli(s.Accepted).UTC() }
