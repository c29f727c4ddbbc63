package localpaddock_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The metrics", func() {
	It("tell how far the search index is", func() {
		for _, health := range paddock.HealthURLs {
			metrics := string(send(request{method: "GET", url: health + "/metrics", token: "none"}).body)
			Expect(metrics).To(ContainSubstring("paddock_index_complete 1\n"))
			Expect(metrics).To(MatchRegexp(`(?m)^paddock_index_records [1-9]`))
		}
	})
})
