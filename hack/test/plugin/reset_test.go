package plugin

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/clinic"
)

var _ = Describe("reset", func() {
	const namespace = "sandbox"
	manifest := `
apiVersion: v1
kind: Namespace
metadata: {name: sandbox}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: editor, namespace: sandbox}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor, namespace: sandbox}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{kind: ServiceAccount, name: editor, namespace: sandbox}]
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: sandbox, namespace: sandbox}
spec: {timeZone: Australia/Melbourne, sandbox: true}
`

	It("fills a sandbox with the clinic, again and again, and no other Site", func(ctx SpecContext) {
		apply(ctx, manifest)
		_, err := paddock.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "-n", namespace, "site/sandbox")
		Expect(err).NotTo(HaveOccurred())
		reset := []string{"reset", "sandbox", "-n", namespace, "--as-service-account", "editor"}
		expectSlots := func() {
			GinkgoHelper()
			Expect(ok(ctx, "slots", "sandbox", "-n", namespace, "--as-service-account", "editor")).To(And(ContainSubstring("booked"), ContainSubstring("free")))
		}
		Eventually(func() int { return run(ctx, reset...).code }).WithTimeout(patience).Should(Equal(0))
		expectSlots()

		By("removing what was written since")
		token := strings.TrimSpace(ok(ctx, "token", "sandbox", "-n", namespace, "--as-service-account", "editor"))
		url := paddock.PublicURL() + "/site/sandbox"
		send := func(method, path, body string) int {
			return requestAt(ctx, method, url+path, token, body).StatusCode
		}
		Expect(send(http.MethodPut, "/fhir/Patient/stray", `{"resourceType":"Patient","id":"stray"}`)).To(Equal(http.StatusCreated))
		Expect(send(http.MethodDelete, "/fhir/Patient/kiwi", "")).To(BeNumerically("<", 300))
		Expect(ok(ctx, reset...)).To(BeEmpty(), "its message is on stderr")
		Expect(send(http.MethodGet, "/fhir/Patient/stray", "")).To(Equal(http.StatusGone))
		for _, record := range clinic.Records() {
			Expect(send(http.MethodGet, "/fhir/"+record.Type+"/"+record.ID, "")).To(Equal(http.StatusOK), record.Type+"/"+record.ID)
		}
		expectSlots()

		Expect(fails(ctx, "reset", "demo", "-n", "demo", "--as-service-account", "editor")).To(ContainSubstring("is not a sandbox"))
	})
})
