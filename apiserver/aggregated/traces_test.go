package aggregated_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
)

var _ = Describe("Traces", func() {
	It("tell what requests did, and nothing of their queries", func(ctx SpecContext) {
		must(ctx, "get", "patients.r4.fhir.paddock.health", "-n", "demo", "-l", "example.org/owner=nobodyknows")
		must(ctx, "get", "--raw", facade+"/fhir/patient?family=Nobodyknows")
		for _, name := range []string{"list patients", "GET /site/{siteId}/fhir/{type}"} {
			spans := func() []*tracev1.Span { return traces.Named(name) }
			Eventually(spans).WithContext(ctx).ShouldNot(BeEmpty())
			for _, span := range spans() {
				Expect(span.String()).NotTo(Or(ContainSubstring("obodyknows"), ContainSubstring(token)))
			}
		}
	}, NodeTimeout(time.Minute))
})
