package acceptance

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const foreignAccount = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: demo}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s, namespace: demo}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: [%[2]s], verbs: [%[3]s]%[4]s}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: demo}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: demo}]
`

var _ = Describe("Whoever may not, or asks wrongly,", func() {
	type want struct {
		status int
		code   string // issue.details.coding.code
	}
	refused := func(r request, expected want) {
		GinkgoHelper()
		answer := send(r)
		Expect(answer.status).To(Equal(expected.status), string(answer.body))
		Expect(answer.field("resourceType")).To(Equal("OperationOutcome"))
		Expect(string(answer.body)).To(ContainSubstring(`"code":"` + expected.code + `"`))
		if expected.status == http.StatusUnauthorized {
			Expect(answer.header.Get("WWW-Authenticate")).To(HavePrefix("Bearer "))
		}
	}
	demoToken := func(ctx SpecContext, account, audience string) string {
		GinkgoHelper()
		made, err := paddock.Token(ctx, "demo", account, audience, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		return made
	}
	var patients string
	BeforeEach(func() { patients = balanced + "/site/demo/fhir/patient" })

	It("is told so: tokens", func(ctx SpecContext) {
		refused(request{method: "GET", url: patients, token: "none"}, want{401, "login_required"})
		refused(request{method: "GET", url: patients, token: "nonsense"}, want{401, "login_required"})
		refused(request{method: "GET", url: patients, token: "e30.e30.e30"}, want{401, "login_required"})
		refused(request{method: "GET", url: patients, token: token[:len(token)-4] + "AAAA"}, want{401, "login_required"})
		refused(request{method: "GET", url: patients, token: "none", header: map[string]string{"Authorization": "Basic dTpw"}}, want{401, "login_required"})
		refused(request{method: "GET", url: balanced + "/site/none/fhir/patient", token: "none"}, want{401, "login_required"})
		apply(ctx, foreignAccount, "stranger", "nothing", "get", "")
		By("a token for another audience, of somebody who has rights here and of somebody who has none")
		refused(request{method: "GET", url: patients, token: demoToken(ctx, "editor", "paddock.health/demo/other")}, want{401, "login_required"})
		refused(request{method: "GET", url: patients, token: demoToken(ctx, "stranger", "elsewhere")}, want{401, "login_required"})
	})

	It("is told so: rights", func(ctx SpecContext) {
		apply(ctx, foreignAccount, "reader", "patients", "get", "")
		apply(ctx, foreignAccount, "reader-of-one", "patients", "get", ", resourceNames: [one]")
		apply(ctx, foreignAccount, "stranger", "nothing", "get", "")
		for _, id := range []string{"one", "two"} {
			send(request{method: "PUT", url: patients + "/" + id, body: patient(1)})
		}
		const audience = "paddock.health/demo/demo"
		reader, readerOfOne, stranger := demoToken(ctx, "reader", audience), demoToken(ctx, "reader-of-one", audience), demoToken(ctx, "stranger", audience)
		Eventually(func() int { return send(request{method: "GET", url: patients + "/one", token: reader}).status }).Should(Equal(http.StatusOK))
		for _, r := range []request{
			{method: "GET", url: patients},
			{method: "POST", url: patients, body: patient(1)},
			{method: "PUT", url: patients + "/one", body: patient(1)},
			{method: "DELETE", url: patients + "/one"},
			{method: "GET", url: patients + "/one/_history"},
			{method: "GET", url: balanced + "/site/demo/fhir/person/one"},
		} {
			r.token = reader
			refused(r, want{403, "permission_denied"})
		}
		Eventually(func() int { return send(request{method: "GET", url: patients + "/ONE", token: readerOfOne}).status }).Should(Equal(http.StatusOK))
		Expect(send(request{method: "GET", url: patients + "/two", token: readerOfOne}).status).To(BeElementOf(http.StatusForbidden, http.StatusNotFound))
		By("a caller without any right on the site")
		answer := send(request{method: "GET", url: patients, token: stranger})
		Expect(answer.status).To(Equal(http.StatusForbidden))
		Expect(string(answer.body)).To(ContainSubstring("may not list patients.r4.fhir.paddock.health"))
		refused(request{method: "GET", url: balanced + "/site/absent/fhir/patient", token: stranger}, want{404, "unknown_site"})
	})

	It("is told so: methods, types, bodies", func() {
		refused(request{method: "PUT", url: patients + "/_search"}, want{405, "method_not_allowed"})
		refused(request{method: "GET", url: balanced + "/site/demo/fhir/pet"}, want{404, "unknown_type"})
		refused(request{method: "GET", url: patients + "/never"}, want{404, "resource_not_found"})
		refused(request{method: "POST", url: patients, body: `{"resourceType":"Patient",`}, want{400, "unparseable_resource"})
		refused(request{method: "POST", url: patients, body: `{"resourceType":"Person"}`}, want{400, "resource_mismatch"})
		refused(request{method: "PUT", url: patients + "/one", body: `{"resourceType":"Patient","id":"two"}`}, want{400, "invalid_id"})
		refused(request{method: "POST", url: patients, body: strings.Repeat(" ", 5<<20)}, want{413, "too_large"})
		refused(request{method: "POST", url: patients, body: `<Patient/>`, header: map[string]string{"Content-Type": "application/fhir+xml"}}, want{415, "unsupported_media_type"})
		refused(request{method: "GET", url: patients + "?colour=brown"}, want{400, "invalid_query"})
		refused(request{method: "GET", url: patients + "?_page_token=x"}, want{400, "invalid_query"})
	})

	It("finds the page of the code at the address in the response", func() {
		problem := send(request{method: "GET", url: balanced + "/site/demo/ahds/v1/availability-slot?colour=brown"})
		var outcome struct {
			Issue []struct {
				Details struct {
					Coding []struct{ System, Code string }
					Text   string
				}
			}
		}
		answer := send(request{method: "GET", url: patients + "?colour=brown"})
		Expect(json.Unmarshal(answer.body, &outcome)).To(Succeed(), string(answer.body))
		details := outcome.Issue[0].Details
		Expect(details.Text).NotTo(BeEmpty())
		for code, address := range map[string]string{
			problem.field("code").(string): problem.field("type").(string),
			details.Coding[0].Code:         details.Coding[0].System + "/" + details.Coding[0].Code,
		} {
			page := send(request{method: "GET", url: address, token: "none"})
			Expect(page.status).To(Equal(http.StatusOK), address)
			Expect(page.field("code")).To(Equal(code))
			Expect(page.field("remedy")).NotTo(BeEmpty())
			browser := send(request{method: "GET", url: address, token: "none", header: map[string]string{"Accept": "text/html"}})
			Expect(browser.header.Get("Content-Type")).To(HavePrefix("text/html"))
		}
	})
})
