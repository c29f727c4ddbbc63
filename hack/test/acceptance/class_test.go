package acceptance

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// classManifest is a class with one bundle entry and another privacy default: its name, and the default.
const classManifest = `
apiVersion: paddock.health/v1alpha1
kind: SiteClass
metadata: {name: %[1]s}
spec:
  limits: {maxBundleEntries: 1}
  privacy: {default: %[2]s}
`

var _ = Describe("A class of sites", Ordered, func() {
	const bundle = `{"resourceType":"Bundle","type":"batch","entry":[
		{"request":{"method":"GET","url":"Patient/a"}},{"request":{"method":"GET","url":"Patient/b"}}]}`
	var editor string

	// everywhere asks each API server until the status is as wanted.
	everywhere := func(method, path, body string, want int) {
		GinkgoHelper()
		for _, base := range paddock.URLs {
			Eventually(func() int {
				return send(request{method: method, url: base + "/site/classy/fhir" + path, body: body, token: editor}).status
			}).Should(Equal(want))
		}
	}

	BeforeAll(func(ctx SpecContext) {
		apply(ctx, classManifest, "acceptance", "Open")
		apply(ctx, tenantManifest+`---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: classy, namespace: clinic-classy}
spec: {className: acceptance, deletionPolicy: Delete}
`, "clinic-classy")
		waitReady(ctx, "clinic-classy", "classy")
		editor = editorOf(ctx, "clinic-classy", "classy")
		written := send(request{method: "PUT", url: paddock.URLs[0] + "/site/classy/fhir/patient/rex", body: patient(1), token: editor})
		Expect(written.status).To(Equal(http.StatusCreated), string(written.body))
	})

	It("limits requests and restricts records, as it is now", func(ctx SpecContext) {
		everywhere("GET", "/patient/rex", "", http.StatusOK)
		everywhere("POST", "", bundle, http.StatusRequestEntityTooLarge)
		apply(ctx, classManifest, "acceptance", "Closed")
		everywhere("GET", "/patient/rex", "", http.StatusNotFound)
	})

	It("does not change what a site sets itself", func(ctx SpecContext) {
		kubectl(ctx, "patch", "site", "classy", "-n", "clinic-classy", "--type=merge", "-p", `{"spec":{"privacy":{"default":"Open"},"limits":{"maxBundleEntries":2}}}`)
		everywhere("GET", "/patient/rex", "", http.StatusOK)
		everywhere("POST", "", bundle, http.StatusOK)
	})

	It("remains while sites use it, and no site is served without its class", func(ctx SpecContext) {
		kubectl(ctx, "delete", "siteclass", "acceptance", "--wait=false")
		everywhere("GET", "/patient/rex", "", http.StatusOK)
		Expect(kubectl(ctx, "get", "siteclass", "acceptance", "-o", "jsonpath={.status.sites} {.metadata.deletionTimestamp}")).To(MatchRegexp(`^1 2`))
		kubectl(ctx, "delete", "site", "classy", "-n", "clinic-classy")
		kubectl(ctx, "wait", "--for=delete", "--timeout=1m", "siteclass/acceptance")
	})
})
