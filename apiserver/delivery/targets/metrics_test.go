package targets

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/paddock-health/paddock/apiserver/delivery"
)

func TestBacklog(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	targets := &Targets{options: Options{Now: func() time.Time { return now }}}
	targets.backlog.set("gone", map[string]delivery.Health{"a": {Pending: 1}})
	targets.backlog.set("oak", map[string]delivery.Health{
		"idle":    {LastSuccess: now},
		"busy":    {Pending: 2, OldestPending: now.Add(-time.Second)},
		"late":    {Pending: 3, OldestPending: now.Add(-time.Minute)},
		"failing": {Pending: 40, OldestPending: now.Add(-time.Hour), FailingSince: now.Add(-time.Hour)},
	})
	targets.backlog.keep(map[string]bool{"oak": true, "elm": true})
	const want = `
# HELP paddock_webhook_oldest_pending_seconds Seconds since the oldest event with a delivery that has not ended was accepted, by whether the last attempt of its webhook failed.
# TYPE paddock_webhook_oldest_pending_seconds gauge
paddock_webhook_oldest_pending_seconds{failing="false",namespace="oak"} 60
paddock_webhook_oldest_pending_seconds{failing="true",namespace="oak"} 3600
# HELP paddock_webhook_pending_deliveries Deliveries that have not ended, by whether the last attempt of their webhook failed.
# TYPE paddock_webhook_pending_deliveries gauge
paddock_webhook_pending_deliveries{failing="false",namespace="oak"} 5
paddock_webhook_pending_deliveries{failing="true",namespace="oak"} 40
# HELP paddock_webhooks Webhooks with sent or pending events, by whether their last attempt failed.
# TYPE paddock_webhooks gauge
paddock_webhooks{failing="false",namespace="oak"} 3
paddock_webhooks{failing="true",namespace="oak"} 1
`
	if err := testutil.CollectAndCompare(targets, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
