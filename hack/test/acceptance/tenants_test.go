package acceptance

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// tenantAdmin gives a namespace's editor all rights in it: namespace.
const tenantAdmin = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: admin, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{kind: ServiceAccount, name: editor, namespace: %[1]s}]
`

// secretName is a patient of the site demo that nobody else may learn of.
const secretName = "Tenants-Must-Not-See-Me"

var _ = Describe("A tenant with all rights in a namespace", Ordered, func() {
	var own string // the tenant's token for the tenant's site

	// tokenFor is the tenant's, for whatever audience it asks for.
	tokenFor := func(ctx SpecContext, audience string) string {
		GinkgoHelper()
		made, err := paddock.Token(ctx, "clinic-tenant", "editor", audience, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		return made
	}

	BeforeAll(func(ctx SpecContext) {
		apply(ctx, siteManifest, "clinic-tenant", "tenant", "tenant", "Delete")
		apply(ctx, tenantAdmin, "clinic-tenant")
		kubectl(ctx, "patch", "site", "tenant", "-n", "clinic-tenant", "--type=merge", "-p", `{"spec":{"access":{"kubernetes":{"apiServerAudience":true}}}}`)
		waitReady(ctx, "clinic-tenant", "tenant")
		own = editorOf(ctx, "clinic-tenant", "tenant")
		answer := send(request{
			method: "PUT", url: balanced + "/site/demo/fhir/practitioner/hidden",
			body: `{"resourceType":"Practitioner","id":"hidden","name":[{"family":"` + secretName + `"}]}`,
		})
		Expect(answer.status).To(BeElementOf(http.StatusOK, http.StatusCreated))
		Eventually(func() int {
			return send(request{method: "GET", url: balanced + "/site/tenant/fhir/practitioner", token: own}).status
		}).Should(Equal(http.StatusOK))
	})

	It("reads nothing of another site, by any token", func(ctx SpecContext) {
		for _, audience := range []string{
			"paddock.health/clinic-tenant/tenant", "paddock.health/demo/demo", "paddock.health/demo/tenant",
			"paddock.health/clinic-tenant/demo/demo", "https://kubernetes.default.svc",
		} {
			answer := send(request{method: "GET", url: balanced + "/site/demo/fhir/practitioner/hidden", token: tokenFor(ctx, audience)})
			want := http.StatusUnauthorized
			if audience == "paddock.health/demo/demo" {
				want = http.StatusForbidden
			}
			Expect(answer.status).To(Equal(want), "a token for %s: %s", audience, answer.body)
			Expect(string(answer.body)).NotTo(ContainSubstring(secretName))
		}
	})

	It("becomes nobody else by a header", func(ctx SpecContext) {
		for _, token := range []string{own, tokenFor(ctx, "paddock.health/demo/demo"), "none"} {
			answer := send(request{method: "GET", url: balanced + "/site/demo/fhir/practitioner/hidden", token: token, header: map[string]string{
				"Impersonate-User": "system:serviceaccount:demo:editor", "Impersonate-Group": "system:masters",
				"X-Remote-User": "system:serviceaccount:demo:editor", "X-Remote-Group": "system:masters",
				"X-Forwarded-User": "editor", "X-Forwarded-Host": "demo", "X-Original-Url": "/site/demo/fhir/practitioner/hidden",
			}})
			Expect(answer.status).To(BeElementOf(http.StatusUnauthorized, http.StatusForbidden), string(answer.body))
			Expect(string(answer.body)).NotTo(ContainSubstring(secretName))
		}
	})

	DescribeTable("gets to no other site from its own", func(path string) {
		answer := send(request{method: "GET", url: balanced + "/site/tenant" + path, token: own})
		Expect(answer.status).To(Or(Equal(http.StatusOK), BeNumerically(">=", 400)), string(answer.body))
		Expect(answer.status).To(BeNumerically("<", 500), string(answer.body))
		Expect(string(answer.body)).NotTo(ContainSubstring(secretName))
	},
		Entry("by a path upwards", "/../demo/fhir/practitioner/hidden"),
		Entry("by an encoded path upwards", "/%2e%2e/demo/fhir/practitioner/hidden"),
		Entry("by encoded slashes", "%2f..%2fdemo/fhir/practitioner/hidden"),
		Entry("by a path below the API", "/fhir/../../demo/fhir/practitioner/hidden"),
		Entry("by a type with a slash", "/fhir/..%2f..%2fdemo%2ffhir%2fpractitioner/hidden"),
		Entry("by an id with a slash", "/fhir/practitioner/..%2f..%2f..%2fdemo%2ffhir%2fpractitioner%2fhidden"),
		Entry("by two slashes", "//demo/fhir/practitioner/hidden"),
		Entry("by the id alone", "/fhir/practitioner/hidden"),
		Entry("by a search", "/fhir/practitioner?family:contains=Tenants"),
	)

	It("includes no record of another site that its own refer to", func() {
		references := []string{"Practitioner/hidden", paddock.PublicURL() + "/site/demo/fhir/Practitioner/hidden", balanced + "/site/demo/fhir/practitioner/hidden"}
		for i, reference := range references {
			body := fmt.Sprintf(`{"resourceType":"Patient","id":"p%d","generalPractitioner":[{"reference":%q}]}`, i, reference)
			answer := send(request{method: "PUT", url: fmt.Sprintf("%s/site/tenant/fhir/patient/p%d", balanced, i), token: own, body: body})
			Expect(answer.status).To(Equal(http.StatusCreated), string(answer.body))
		}
		Eventually(func() any {
			return send(request{method: "GET", url: balanced + "/site/tenant/fhir/patient", token: own}).field("total")
		}).Should(BeEquivalentTo(len(references)))
		for _, query := range []string{"_include=Patient:general-practitioner", "general-practitioner.family=Tenants", "_include:iterate=*"} {
			answer := send(request{method: "GET", url: balanced + "/site/tenant/fhir/patient?" + query, token: own})
			Expect(string(answer.body)).NotTo(ContainSubstring(secretName), query)
		}
	})

	It("gains nothing by a batch whose entries are another site's", func() {
		batch := map[string]any{"resourceType": "Bundle", "type": "batch", "entry": []any{
			map[string]any{"request": map[string]string{"method": "GET", "url": "../../demo/fhir/Practitioner/hidden"}},
			map[string]any{"request": map[string]string{"method": "GET", "url": paddock.PublicURL() + "/site/demo/fhir/Practitioner/hidden"}},
			map[string]any{"request": map[string]string{"method": "GET", "url": "/site/demo/fhir/Practitioner/hidden"}},
		}}
		text, err := json.Marshal(batch)
		Expect(err).NotTo(HaveOccurred())
		answer := send(request{method: "POST", url: balanced + "/site/tenant/fhir", token: own, body: string(text)})
		Expect(answer.status).To(BeNumerically("<", 500), string(answer.body))
		Expect(string(answer.body)).NotTo(ContainSubstring(secretName))
	})

	It("has nothing asked of a private address by a webhook", func(ctx SpecContext) {
		listener, err := net.Listen("tcp", "127.0.0.2:0") // 127.0.0.1 is allowed to these processes
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		var connections atomic.Int32
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				connections.Add(1)
				_ = conn.Close()
			}
		}()
		_, port, err := net.SplitHostPort(listener.Addr().String())
		Expect(err).NotTo(HaveOccurred())
		events, hooks := balanced+strings.Replace(eventsPath, "demo", "tenant", 1), balanced+strings.Replace(hooksPath, "demo", "tenant", 1)
		for _, kind := range []string{"user.created", "appointment.created"} {
			send(request{method: "POST", url: events, token: own, body: fmt.Sprintf(`{"eventType":%q,"isEnabled":true}`, kind)}).created("webhookEventId")
			for _, host := range []string{"127.0.0.2", "[::ffff:127.0.0.2]"} {
				body := fmt.Sprintf(`{"eventType":%q,"webhookUrl":"https://%s:%s/","isActive":true}`, kind, host, port)
				send(request{method: "POST", url: hooks, token: own, body: body}).created("webhookId")
			}
		}
		DeferCleanup(func(ctx SpecContext) { // retries would go on during other specs
			kubectl(ctx, "delete", "webhooks.paddock.health,webhookevents.paddock.health", "--all", "-n", "clinic-tenant")
		})
		kubectl(ctx, "wait", "-n", "clinic-tenant", "--for=condition=Accepted", "webhook", "--all", "--timeout=1m")
		answer := send(request{method: "PUT", url: balanced + "/site/tenant/fhir/practitioner/new", token: own, body: `{"resourceType":"Practitioner","id":"new"}`})
		Expect(answer.status).To(Equal(http.StatusCreated), string(answer.body))
		Consistently(connections.Load).WithTimeout(3 * time.Second).Should(BeZero())
	})
})
