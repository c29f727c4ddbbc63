package localpaddock_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The metrics", func() {
	It("tell how far the search index is", func() {
		Expect(send(request{method: "PUT", url: balanced + "/site/demo/fhir/patient/counted", body: patient(1)}).status).To(BeElementOf(http.StatusOK, http.StatusCreated))
		for _, health := range paddock.HealthURLs {
			metrics := func() string {
				return string(send(request{method: "GET", url: health + "/metrics", token: "none"}).body)
			}
			Eventually(metrics).Within(time.Second).Should(MatchRegexp(`(?m)^paddock_index_records [1-9]`))
			Expect(metrics()).To(ContainSubstring("paddock_index_complete 1\n"))
		}
	})
})
