package delivery

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of attempts. The methods of a nil *Metrics do nothing.
type Metrics struct {
	attempts  *prometheus.CounterVec
	latency   prometheus.Histogram
	disabling *prometheus.CounterVec
}

// NewMetrics registers and returns the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paddock_webhook_attempts_total", Help: "Attempts to deliver an event, by the reason of their result.",
		}, []string{"reason"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "paddock_webhook_delivery_seconds", Help: "Seconds from the acceptance of an event to the receiver's response with status 2xx.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600, 3600, 6 * 3600, 24 * 3600, 72 * 3600},
		}),
		disabling: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paddock_webhooks_disabled_total", Help: "Webhooks that were disabled automatically, by cause.",
		}, []string{"cause"}),
	}
	for _, reason := range reasons {
		m.attempts.WithLabelValues(string(reason))
	}
	for _, cause := range []Cause{CauseGone, CauseFailing} {
		m.disabling.WithLabelValues(string(cause))
	}
	for _, collector := range []prometheus.Collector{m.attempts, m.latency, m.disabling} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// reasons has every Reason.
var reasons = []Reason{
	ReasonDelivered, ReasonStatus, ReasonRedirect, ReasonGone, ReasonThrottled, ReasonTimeout, ReasonConnection,
	ReasonCertificate, ReasonResolution, ReasonForbiddenAddress, ReasonSecret, ReasonDisabled,
}

func (m *Metrics) attempted(reason Reason) {
	if m != nil {
		m.attempts.WithLabelValues(string(reason)).Inc()
	}
}

func (m *Metrics) delivered(after time.Duration) {
	if m != nil {
		m.latency.Observe(after.Seconds())
	}
}

func (m *Metrics) disabled(cause Cause) {
	if m != nil {
		m.disabling.WithLabelValues(string(cause)).Inc()
	}
}
