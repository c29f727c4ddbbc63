package acceptance

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The limits of a site", Ordered, func() {
	var editor, other string

	BeforeAll(func(ctx SpecContext) {
		apply(ctx, siteManifest, "clinic-limited", "limited", "limited", "Delete")
		waitReady(ctx, "clinic-limited", "limited")
		editor = editorOf(ctx, "clinic-limited", "limited")
		apply(ctx, patientReader, "clinic-limited")
		kubectl(ctx, "create", "serviceaccount", "reader", "-n", "clinic-limited")
		var err error
		other, err = paddock.Token(ctx, "clinic-limited", "reader", "paddock.health/clinic-limited/limited", time.Hour)
		Expect(err).NotTo(HaveOccurred())
		for _, base := range paddock.URLs {
			Eventually(func() int {
				return send(request{method: "GET", url: base + "/site/limited/fhir/patient/none", token: other}).status
			}).Should(Equal(http.StatusNotFound))
			Expect(send(request{method: "GET", url: base + "/site/limited/fhir/patient", token: editor}).status).To(Equal(http.StatusOK))
		}
		kubectl(ctx, "patch", "site", "limited", "-n", "clinic-limited", "--type=merge", "-p",
			`{"spec":{"limits":{"requestsPerSecond":6,"burst":8,"callerRequestsPerSecond":1}}}`)
	})

	// exceed asks one API server until it refuses.
	exceed := func(path, token string) response {
		GinkgoHelper()
		var refused response
		Eventually(func() int {
			refused = send(request{method: "GET", url: paddock.URLs[0] + "/site/limited" + path, token: token})
			return refused.status
		}).WithPolling(time.Millisecond).Should(Equal(http.StatusTooManyRequests))
		return refused
	}
	expectHeaders := func(refused response) {
		GinkgoHelper()
		after, err := strconv.Atoi(refused.header.Get("Retry-After"))
		Expect(err).NotTo(HaveOccurred())
		Expect(after).To(BeNumerically("~", 1, 1))
		Expect(refused.header.Get("RateLimit-Policy")).To(Equal(`"caller";q=8;w=8`))
		Expect(refused.header.Get("RateLimit")).To(MatchRegexp(`^"caller";r=0;t=[12]$`))
	}

	It("refuse the requests of a caller that are too many, and not those of others", func() {
		refused := exceed("/fhir/patient/none", editor)
		expectHeaders(refused)
		Expect(refused.field("resourceType")).To(Equal("OperationOutcome"))
		Expect(string(refused.body)).To(And(ContainSubstring(`"code":"throttled"`), ContainSubstring(`"too_many_requests"`)))
		By("the burst is the site's too, which fills six times as fast as that of a caller")
		Eventually(func() int {
			return send(request{method: "GET", url: paddock.URLs[0] + "/site/limited/fhir/patient/none", token: other}).status
		}).WithPolling(100 * time.Millisecond).Should(Equal(http.StatusNotFound))
		Expect(send(request{method: "GET", url: paddock.URLs[0] + "/site/demo/fhir/patient"}).status).To(Equal(http.StatusOK))

		By("the same in AHDS")
		refused = exceed("/ahds/v1/availability-slot", editor)
		expectHeaders(refused)
		Expect(refused.header.Get("Content-Type")).To(Equal("application/problem+json"))
		Expect(refused.field("code")).To(Equal("too_many_requests"))

		By("serving the caller again a second later")
		Eventually(func() int {
			return send(request{method: "GET", url: paddock.URLs[0] + "/site/limited/fhir/patient/none", token: editor}).status
		}).Should(Equal(http.StatusNotFound))
	})

	It("refuse requests without a caller by their address, and none with one", func() {
		var limited atomic.Bool
		var clients sync.WaitGroup
		for range 32 { // one after the other, requests would come no faster than the bucket fills
			clients.Go(func() {
				defer GinkgoRecover()
				for range 1000 {
					if limited.Load() {
						return
					}
					status := send(request{method: "GET", url: paddock.URLs[1] + "/site/limited/fhir/patient", token: "none"}).status
					Expect(status).To(BeElementOf(http.StatusUnauthorized, http.StatusTooManyRequests))
					limited.CompareAndSwap(false, status == http.StatusTooManyRequests)
				}
			})
		}
		clients.Wait()
		Expect(limited.Load()).To(BeTrue())
		Expect(send(request{method: "GET", url: paddock.URLs[1] + "/site/demo/fhir/patient"}).status).To(Equal(http.StatusOK))
	})
})
