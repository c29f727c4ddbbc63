package aggregated_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A namespace", func() {
	in := func(namespace string) string { return group + "/namespaces/" + namespace + "/patients" }
	post := func(ctx SpecContext, namespace string) response {
		GinkgoHelper()
		return sendTo(ctx, http.MethodPost, in(namespace), "application/yaml", manifest("name: rex", "{}"))
	}
	applied := func(ctx SpecContext, namespace string) response {
		GinkgoHelper()
		return sendTo(ctx, http.MethodPatch, in(namespace)+"/rex?fieldManager=x", "application/apply-patch+yaml", manifest("name: rex", "{}"))
	}
	// expectEmpty is for what nothing may hang on.
	expectEmpty := func(ctx SpecContext, namespace string) {
		GinkgoHelper()
		list := sendTo(ctx, http.MethodGet, in(namespace), "", "")
		Expect(list.status).To(Equal(http.StatusOK), "%s", list.body)
		Expect(decoded(list.body)["items"]).To(BeEmpty())
		Expect(sendTo(ctx, http.MethodDelete, in(namespace)+"/rex", "", "").status).To(Equal(http.StatusNotFound))
	}

	It("that is not there has nothing and takes nothing", func(ctx SpecContext) {
		expectEmpty(ctx, "no-such-namespace")
		for _, answer := range []response{post(ctx, "no-such-namespace"), applied(ctx, "no-such-namespace")} {
			Expect(answer.status).To(Equal(http.StatusNotFound))
			Expect(string(answer.body)).To(ContainSubstring(`namespaces \"no-such-namespace\" not found`))
		}
	})

	It("without a Site has nothing, and says what it lacks", func(ctx SpecContext) {
		expectEmpty(ctx, "default")
		for _, answer := range []response{post(ctx, "default"), applied(ctx, "default")} {
			Expect(answer.status).To(Equal(http.StatusNotFound))
			Expect(string(answer.body)).To(ContainSubstring(`there is no Site in namespace \"default\"`))
		}
		Expect(sendTo(ctx, http.MethodPatch, in("default")+"/rex", "application/merge-patch+json", "{}").status).To(Equal(http.StatusNotFound))
	})

	It("that is going away has nothing any more, whatever its site has", func(ctx SpecContext) {
		apply(ctx, strings.ReplaceAll(writesSite, "writes", "leaving"))
		put(ctx, "leaving", startSite(ctx, "leaving", "leaving"), "rex", `{"resourceType":"Patient","id":"rex"}`)
		Expect(sendTo(ctx, http.MethodGet, in("leaving")+"/rex", "", "").status).To(Equal(http.StatusOK))
		// Nobody finishes the deletion: there is no controller of namespaces here.
		must(ctx, "delete", "namespace", "leaving", "--wait=false")
		Eventually(func() int { return sendTo(ctx, http.MethodGet, in("leaving")+"/rex", "", "").status }).WithContext(ctx).Should(Equal(http.StatusNotFound))
		expectEmpty(ctx, "leaving")
		other := manifest("name: new", "{}")
		answer := sendTo(ctx, http.MethodPost, in("leaving"), "application/yaml", other)
		Expect(answer.status).To(Equal(http.StatusForbidden), "%s", answer.body)
		Expect(string(answer.body)).To(ContainSubstring("is being terminated"))
		Expect(send(ctx, http.MethodGet, siteURL("leaving")+"/rex", "", "").status).To(Equal(http.StatusUnauthorized), "the site itself is still there")
	})

	It("whose Site is going away has nothing either", func(ctx SpecContext) {
		apply(ctx, strings.ReplaceAll(writesSite, "writes", "closing"))
		put(ctx, "closing", startSite(ctx, "closing", "closing"), "rex", `{"resourceType":"Patient","id":"rex"}`)
		must(ctx, "delete", "site", "closing", "-n", "closing", "--wait=false")
		Eventually(func() int { return sendTo(ctx, http.MethodGet, in("closing")+"/rex", "", "").status }).WithContext(ctx).Should(Equal(http.StatusNotFound))
		expectEmpty(ctx, "closing")
		Expect(post(ctx, "closing").status).To(Equal(http.StatusNotFound))
	})
})
