package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("A controller that loses its Lease", func() {
	It("ends, and reconciles after its next start what has changed meanwhile, while requests are served", func(ctx SpecContext) {
		controller := paddock.Controllers[0]
		apply(ctx, siteManifest, "clinic-lease", "lease", "lease", "Retain")
		waitReady(ctx, "clinic-lease", "lease")
		editor := editorOf(ctx, "clinic-lease", "lease")
		requests, stop := context.WithCancel(ctx)
		DeferCleanup(stop)
		served := 0 // to be read when failed is closed
		failed := make(chan response, 1)
		go func() {
			defer GinkgoRecover()
			defer close(failed)
			for n := 0; requests.Err() == nil; n++ {
				answer := send(request{method: "PUT", url: fmt.Sprintf("%s/site/lease/fhir/patient/p%d", paddock.URLs[n%2], n), body: patient(n), token: editor})
				if answer.status != http.StatusCreated {
					failed <- answer
					return
				}
				served++
				time.Sleep(100 * time.Millisecond) // a moderate load
			}
		}()

		leader, exited := controller.Pid(), controller.Exited()
		kubectl(ctx, "patch", "lease", "paddock-controller", "-n", "paddock-system", "--type=merge", "-p", fmt.Sprintf(
			`{"spec":{"holderIdentity":"another","leaseDurationSeconds":15,"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro)))
		Eventually(exited).Within(30 * time.Second).Should(BeClosed())
		kubectl(ctx, "patch", "site", "lease", "-n", "clinic-lease", "--type=merge", "-p", `{"spec":{"deletionPolicy":"Delete"}}`)
		Eventually(func() string {
			return kubectl(ctx, "get", "site", "lease", "-n", "clinic-lease", "-o", `jsonpath={.metadata.generation} {.status.observedGeneration}`)
		}).Within(2 * time.Minute).ProbeEvery(time.Second).Should(Equal("2 2"))
		Expect(controller.Pid()).NotTo(Or(BeZero(), Equal(leader)))
		stop()
		for answer := range failed {
			Fail(fmt.Sprintf("after %d writes, one got %d: %s", served, answer.status, answer.body))
		}
		Expect(served).To(BeNumerically(">", 20))
	}, SpecTimeout(4*time.Minute))
})
