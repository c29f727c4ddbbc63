package acceptance

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/paddock-health/paddock/hack/dev/tracecollector"
)

var _ = Describe("Traces", Serial, func() {
	const (
		trace  = "0af7651916cd43dd8448eb211c80319c"
		caller = "b7ad6b7169203331"
	)

	It("tell a collector what a request did, and nothing of its query", func(ctx SpecContext) {
		collected := &tracecollector.Collector{}
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
			for _, span := range collected.Of(trace) {
				if strings.HasPrefix(span.Name, name) {
					return span
				}
			}
			return nil
		}

		read("/site/demo-postgres/fhir/patient?family=Nobodyknows")
		const route = "GET /site/{siteId}/fhir/{type}"
		Eventually(func() *tracev1.Span { return spanOf(route) }).Within(30 * time.Second).ShouldNot(BeNil())
		served := spanOf(route)
		Expect(hex.EncodeToString(served.ParentSpanId)).To(Equal(caller))
		Expect(fmt.Sprint(served.Attributes)).To(ContainSubstring("/site/demo-postgres/fhir/patient"))
		asked := spanOf("query ")
		Expect(asked).NotTo(BeNil(), "the statement of the search")
		Expect(asked.ParentSpanId).To(Equal(served.SpanId))

		By("naming what it asked of the cluster, too")
		Expect(send(request{method: "PUT", url: paddock.URLs[before] + "/site/demo/fhir/patient/traced", body: patient(1)}).status).To(Equal(http.StatusCreated))
		read("/site/demo/fhir/patient/traced")
		Eventually(func() *tracev1.Span { return spanOf("HTTP GET") }).Within(30 * time.Second).ShouldNot(BeNil())

		for _, span := range collected.Of(trace) {
			Expect(span.String()).NotTo(Or(ContainSubstring("Nobodyknows"), ContainSubstring(token), ContainSubstring(postgresToken)))
		}
	}, NodeTimeout(3*time.Minute))
})
