// Package tracecollector collects the traces that programs export, for tests.
package tracecollector

import (
	"encoding/hex"
	"io"
	"net/http"
	"sync"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector is an HTTP handler that collects spans exported by OTLP over HTTP. The zero value is ready
// to use. It is safe for concurrent use.
type Collector struct {
	mu    sync.Mutex
	spans []*tracev1.Span
}

// ServeHTTP collects the spans of a request to /v1/traces. It responds with 400 to all other requests.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var sent collectorv1.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
		http.Error(w, "not a request to export traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range sent.ResourceSpans {
		for _, scope := range from.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// Of returns the spans of a trace. trace is its id in hexadecimal.
func (c *Collector) Of(trace string) []*tracev1.Span {
	return c.where(func(span *tracev1.Span) bool { return hex.EncodeToString(span.TraceId) == trace })
}

// Named returns the spans with a name.
func (c *Collector) Named(name string) []*tracev1.Span {
	return c.where(func(span *tracev1.Span) bool { return span.Name == name })
}

// All returns all spans.
func (c *Collector) All() []*tracev1.Span { return c.where(func(*tracev1.Span) bool { return true }) }

func (c *Collector) where(matches func(*tracev1.Span) bool) []*tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*tracev1.Span
	for _, span := range c.spans {
		if matches(span) {
			found = append(found, span)
		}
	}
	return found
}
