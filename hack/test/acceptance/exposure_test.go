package acceptance

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The programs run without an ingress controller: requests come to their own addresses, as
// they do behind one.
var _ = Describe("A site with an address of its own", func() {
	It("answers with links to it, whatever a request calls it", func(ctx SpecContext) {
		apply(ctx, siteManifest, "clinic-exposed", "exposed", "exposed", "Retain")
		kubectl(ctx, "patch", "site", "exposed", "-n", "clinic-exposed", "--type=merge",
			"--patch", `{"spec":{"exposure":{"ingress":{"host":"oak.clinics.example.org"}}}}`)
		kubectl(ctx, "wait", "--for=condition=Exposed", "--timeout=1m", "-n", "clinic-exposed", "site/exposed")
		waitReady(ctx, "clinic-exposed", "exposed")
		const own = "https://oak.clinics.example.org/site/exposed/fhir"
		common := paddock.PublicURL() + "/site/exposed/fhir"
		editor := editorOf(ctx, "clinic-exposed", "exposed")
		location := func(to string) string {
			answer := send(request{method: "POST", url: to, body: patient(1), token: editor, host: "evil.example.org"})
			Expect(answer.status).To(Equal(http.StatusCreated), string(answer.body))
			return answer.header.Get("Location")
		}
		for _, base := range paddock.URLs {
			Eventually(func() string { return location(base + "/site/exposed/fhir/patient") }).Should(HavePrefix(own + "/patient/"))
			page := send(request{method: "GET", url: base + "/site/exposed/fhir/patient?_count=1", token: editor, host: "evil.example.org"})
			Expect(page.status).To(Equal(http.StatusOK))
			Expect(strings.Count(string(page.body), `"`+own+"/patient")).To(BeNumerically(">=", 3), "self, next and fullUrl: %s", page.body)
			Expect(string(page.body)).NotTo(Or(ContainSubstring("evil"), ContainSubstring(common)))
		}

		By("and knows references by either address")
		base := paddock.URLs[0] + "/site/exposed/fhir"
		put := func(path, body string) {
			answer := send(request{method: "PUT", url: base + path, body: body, token: editor})
			Expect(answer.status).To(Equal(http.StatusCreated), string(answer.body))
		}
		put("/practitioner/jo", `{"resourceType":"Practitioner","id":"jo"}`)
		for id, reference := range map[string]string{"relative": "Practitioner/jo", "own": own + "/Practitioner/jo", "common": common + "/Practitioner/jo"} {
			put("/patient/"+id, `{"resourceType":"Patient","id":"`+id+`","generalPractitioner":[{"reference":"`+reference+`"}]}`)
		}
		for _, sought := range []string{"Practitioner/jo", own + "/Practitioner/jo", common + "/Practitioner/jo"} {
			found := send(request{method: "GET", url: base + "/patient?general-practitioner=" + sought, token: editor})
			Expect(found.field("total")).To(BeEquivalentTo(3), "%s: %s", sought, found.body)
		}
		batch := send(request{method: "POST", url: base, token: editor, body: `{"resourceType":"Bundle","type":"batch","entry":[` +
			`{"request":{"method":"GET","url":"` + own + `/Practitioner/jo"}},{"request":{"method":"GET","url":"` + common + `/Practitioner/jo"}}]}`})
		Expect(strings.Count(string(batch.body), `"status":"200`)).To(Equal(2), string(batch.body))

		By("and has the common address again when it asks for none")
		kubectl(ctx, "patch", "site", "exposed", "-n", "clinic-exposed", "--type=merge", "--patch", `{"spec":{"exposure":null}}`)
		Eventually(func() string { return location(base + "/patient") }).Should(HavePrefix(common + "/patient/"))
		Eventually(func() string { return kubectl(ctx, "get", "ingresses", "-n", "paddock-system", "-o", "name") }).Should(BeEmpty())
	})
})
