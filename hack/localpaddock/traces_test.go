package localpaddock_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector takes what is exported by OTLP over HTTP.
type collector struct {
	mu    sync.Mutex
	spans []*tracev1.Span
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

// of are the spans of a trace.
func (c *collector) of(trace string) []*tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*tracev1.Span
	for _, span := range c.spans {
		if hex.EncodeToString(span.TraceId) == trace {
			found = append(found, span)
		}
	}
	return found
}

var _ = Describe("Traces", Serial, func() {
	const (
		trace  = "0af7651916cd43dd8448eb211c80319c"
		caller = "b7ad6b7169203331"
	)

	It("tell a collector what a request did, and nothing of its query", func(ctx SpecContext) {
		collected := &collector{}
		receiver := httptest.NewServer(collected)
		defer receiver.Close()
		before := len(paddock.URLs)
		Expect(paddock.AddAPIServer(ctx, "apiserver", "OTEL_EXPORTER_OTLP_ENDPOINT="+receiver.URL, "OTEL_BSP_SCHEDULE_DELAY=50")).To(Succeed())
		defer func() {
			Expect(paddock.APIServers[before].Kill()).To(Succeed())
			paddock.APIServers, paddock.URLs, paddock.HealthURLs = paddock.APIServers[:before], paddock.URLs[:before], paddock.HealthURLs[:before]
		}()
		for _, site := range demos {
			waitReady(ctx, site, site)
		}
		read := func(path string) {
			header := map[string]string{"traceparent": "00-" + trace + "-" + caller + "-01"}
			Expect(send(request{method: "GET", url: paddock.URLs[before] + path, header: header}).status).To(Equal(http.StatusOK))
		}
		spanOf := func(name string) *tracev1.Span {
			for _, span := range collected.of(trace) {
				if strings.HasPrefix(span.Name, name) {
					return span
				}
			}
			return nil
		}

		read("/site/demo-postgres/fhir/patient?family=Nobodyknows")
		const route = "GET /site/{siteId}/fhir/{type}"
		Eventually(func() *tracev1.Span { return spanOf(route) }).Within(10 * time.Second).ShouldNot(BeNil())
		served := spanOf(route)
		Expect(hex.EncodeToString(served.ParentSpanId)).To(Equal(caller))
		Expect(fmt.Sprint(served.Attributes)).To(ContainSubstring("/site/demo-postgres/fhir/patient"))
		asked := spanOf("query ")
		Expect(asked).NotTo(BeNil(), "the statement of the search")
		Expect(asked.ParentSpanId).To(Equal(served.SpanId))

		By("naming what it asked of the cluster, too")
		Expect(send(request{method: "PUT", url: paddock.URLs[before] + "/site/demo/fhir/patient/traced", body: patient(1)}).status).To(Equal(http.StatusCreated))
		read("/site/demo/fhir/patient/traced")
		Eventually(func() *tracev1.Span { return spanOf("HTTP GET") }).Within(10 * time.Second).ShouldNot(BeNil())

		for _, span := range collected.of(trace) {
			Expect(span.String()).NotTo(Or(ContainSubstring("Nobodyknows"), ContainSubstring(token), ContainSubstring(postgresToken)))
		}
	}, NodeTimeout(time.Minute))
})
