package targets

import (
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paddock-health/paddock/apiserver/delivery"
)

// backlog has the numbers of pending deliveries by namespace, as of the last report. It is empty in
// processes that do not report, which therefore export no metrics of it.
type backlog struct {
	mu    sync.Mutex
	found map[string]waiting
}

// waiting has the pending deliveries of a namespace, for webhooks that fail and for all other webhooks.
type waiting struct{ failing, others backlogOf }

type backlogOf struct {
	webhooks, pending int64
	// oldest is when the oldest pending event was accepted.
	oldest time.Time
}

func (w *backlogOf) add(health delivery.Health) {
	w.webhooks++
	w.pending += health.Pending
	if health.Pending > 0 && !health.OldestPending.IsZero() && (w.oldest.IsZero() || health.OldestPending.Before(w.oldest)) {
		w.oldest = health.OldestPending
	}
}

func (b *backlog) set(namespace string, health map[string]delivery.Health) {
	var found waiting
	for _, each := range health {
		if each.FailingSince.IsZero() {
			found.others.add(each)
		} else {
			found.failing.add(each)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.found == nil {
		b.found = map[string]waiting{}
	}
	b.found[namespace] = found
}

// keep removes the numbers of all namespaces that are not in namespaces.
func (b *backlog) keep(namespaces map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.found, func(namespace string, _ waiting) bool { return !namespaces[namespace] })
}

var (
	webhooksMetric = prometheus.NewDesc("paddock_webhooks",
		"Webhooks with sent or pending events, by whether their last attempt failed.", []string{"namespace", "failing"}, nil)
	pendingMetric = prometheus.NewDesc("paddock_webhook_pending_deliveries",
		"Deliveries that have not ended, by whether the last attempt of their webhook failed.", []string{"namespace", "failing"}, nil)
	oldestMetric = prometheus.NewDesc("paddock_webhook_oldest_pending_seconds",
		"Seconds since the oldest event with a delivery that has not ended was accepted, by whether the last attempt of its webhook failed.", []string{"namespace", "failing"}, nil)
)

// Describe implements prometheus.Collector.
func (t *Targets) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- webhooksMetric
	descriptions <- pendingMetric
	descriptions <- oldestMetric
}

// Collect implements prometheus.Collector.
func (t *Targets) Collect(metrics chan<- prometheus.Metric) {
	now := t.options.Now()
	t.backlog.mu.Lock()
	defer t.backlog.mu.Unlock()
	for namespace, found := range t.backlog.found {
		for failing, each := range map[bool]backlogOf{true: found.failing, false: found.others} {
			age := 0.0
			if !each.oldest.IsZero() {
				age = max(0, now.Sub(each.oldest).Seconds())
			}
			gauge := func(metric *prometheus.Desc, value float64) {
				metrics <- prometheus.MustNewConstMetric(metric, prometheus.GaugeValue, value, namespace, strconv.FormatBool(failing))
			}
			gauge(webhooksMetric, float64(each.webhooks))
			gauge(pendingMetric, float64(each.pending))
			gauge(oldestMetric, age)
		}
	}
}
