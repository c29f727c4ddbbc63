package acceptance

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Settings of a Site", Ordered, func() {
	var base, editor string
	total := func(query string) any {
		return send(request{method: "GET", url: base + query, token: editor}).field("total")
	}
	BeforeAll(func(ctx SpecContext) {
		apply(ctx, siteManifest, "clinic-settings", "settings", "settings", "Delete")
		waitReady(ctx, "clinic-settings", "settings")
		editor = editorOf(ctx, "clinic-settings", "settings")
		base = paddock.URLs[0] + "/site/settings/fhir/"
		for address, body := range map[string]string{
			"practitioner/vet": `{"resourceType":"Practitioner"}`,
			"organization/oak": `{"resourceType":"Organization","name":"Oak"}`,
			"patient/rex": `{"resourceType":"Patient","deceasedDateTime":"2024-06-30T20:00:00Z",
				"generalPractitioner":[{"reference":"Practitioner/vet"}],"managingOrganization":{"reference":"Organization/oak"}}`,
		} {
			Eventually(func() int { // an API server may see later than the controller that the Site is Ready
				return send(request{method: "PUT", url: base + address, body: body, token: editor}).status
			}).Should(Equal(http.StatusCreated))
		}
	})

	It("are those of the design where the Site does not say", func() {
		Expect(send(request{method: "GET", url: base + "patient?color=black", token: editor}).status).To(Equal(http.StatusBadRequest))
		Expect(total("patient?death-date=2024-06-30T20:00:00")).To(BeEquivalentTo(1), "UTC")
		Expect(send(request{method: "GET", url: base + "patient?_include=*", token: editor}).field("entry")).To(HaveLen(3))
	})

	It("hold soon after they change", func(ctx SpecContext) {
		kubectl(ctx, "patch", "site", "settings", "-n", "clinic-settings", "--type=merge", "-p",
			`{"spec":{"timeZone":"Australia/Melbourne","fhir":{"unknownParameters":"Ignore"},"limits":{"maxIncluded":1}}}`)
		Eventually(func() int {
			return send(request{method: "GET", url: base + "patient?color=black", token: editor}).status
		}).Should(Equal(http.StatusOK))
		Expect(total("patient?death-date=2024-06-30T20:00:00")).To(BeEquivalentTo(0), "ten hours before UTC")
		Expect(total("patient?death-date=2024-07-01T06:00:00")).To(BeEquivalentTo(1))
		strict := map[string]string{"Prefer": "handling=strict"}
		Expect(send(request{method: "GET", url: base + "patient?color=black", token: editor, header: strict}).status).To(Equal(http.StatusBadRequest))
		cut := send(request{method: "GET", url: base + "patient?_include=*", token: editor})
		Expect(cut.field("entry")).To(HaveLen(3), "the match, one that is included, and an outcome that says so")
		Expect(string(cut.body)).To(ContainSubstring(`"mode":"outcome"`))
	})
})
