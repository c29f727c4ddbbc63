package acceptance

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Pages of other origins", Ordered, func() {
	const app = "https://app.example.org"
	var base, editor string
	// ask sends what a browser does for a page of an origin.
	ask := func(method, path, origin string, header map[string]string) response {
		all := map[string]string{"Origin": origin}
		for name, value := range header {
			all[name] = value
		}
		sent := editor
		if method == http.MethodOptions {
			sent = "none" // as browsers do
		}
		return send(request{method: method, url: base + path, header: all, token: sent})
	}
	preflight := func(path, origin, method string) response {
		return ask(http.MethodOptions, path, origin, map[string]string{
			"Access-Control-Request-Method": method, "Access-Control-Request-Headers": "authorization,content-type,if-match",
		})
	}
	allow := func(ctx SpecContext, cors string) {
		kubectl(ctx, "patch", "site", "origins", "-n", "clinic-origins", "--type=merge", "-p", `{"spec":{"cors":`+cors+`}}`)
	}
	allowed := func(origin string) string {
		return ask(http.MethodGet, "/fhir/patient", origin, nil).header.Get("Access-Control-Allow-Origin")
	}
	BeforeAll(func(ctx SpecContext) {
		apply(ctx, siteManifest, "clinic-origins", "origins", "origins", "Delete")
		waitReady(ctx, "clinic-origins", "origins")
		editor = editorOf(ctx, "clinic-origins", "origins")
		base = paddock.URLs[0] + "/site/origins"
	})

	It("may not use a site that does not say so", func() {
		refused := preflight("/fhir/patient", app, http.MethodPost)
		Expect(refused.header).NotTo(HaveKey("Access-Control-Allow-Origin"))
		Expect(refused.header).NotTo(HaveKey("Access-Control-Allow-Methods"))
		Expect(allowed(app)).To(BeEmpty())
		Expect(string(ask(http.MethodGet, "/fhir/metadata", app, nil).body)).To(ContainSubstring(`"cors":false`))
	})

	It("may use it when it does, all of it, with tokens and without cookies", func(ctx SpecContext) {
		allow(ctx, `{"allowOrigins":["`+app+`","http://localhost:3000","https://*.clinics.example.org"]}`)
		Eventually(func() string { return allowed(app) }).Within(30 * time.Second).Should(Equal(app))

		for path, methods := range map[string][]string{
			"/fhir/patient":                {http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
			"/ahds/v1/availability-slots":  {http.MethodGet, http.MethodPost},
			"/fhir/patient/rex/_history/1": {http.MethodGet},
			"/fhir/":                       {http.MethodPost},
		} {
			for _, method := range methods {
				granted := preflight(path, app, method)
				Expect(granted.status).To(Equal(http.StatusNoContent), "%s %s without a token", method, path)
				Expect(granted.header.Get("Access-Control-Allow-Origin")).To(Equal(app))
				Expect(granted.header.Get("Access-Control-Allow-Methods")).To(Equal(method))
				Expect(granted.header.Get("Access-Control-Allow-Headers")).To(ContainSubstring("authorization"))
				Expect(granted.header).NotTo(HaveKey("Access-Control-Allow-Credentials"))
			}
		}

		made := ask(http.MethodPost, "/fhir/patient", app, nil)
		Expect(made.status).To(Equal(http.StatusBadRequest))
		Expect(made.header.Get("Access-Control-Allow-Origin")).To(Equal(app), "an error can be read too")
		Expect(made.header.Get("Access-Control-Expose-Headers")).To(And(ContainSubstring("Location"), ContainSubstring("Etag"), ContainSubstring("X-Request-Id")))
		Expect(made.header.Values("Vary")).To(ContainElements("Origin", "Accept", "Authorization"))
		Expect(made.header).NotTo(HaveKey("Access-Control-Allow-Credentials"))

		stranger := send(request{method: http.MethodGet, url: base + "/fhir/patient", header: map[string]string{"Origin": app}, token: "none"})
		Expect(stranger.status).To(Equal(http.StatusUnauthorized))
		Expect(stranger.header.Get("Access-Control-Allow-Origin")).To(Equal(app), "so is what a token is missing for")

		Expect(allowed("http://localhost:3000")).To(Equal("http://localhost:3000"))
		Expect(allowed("https://oak.clinics.example.org")).To(Equal("https://oak.clinics.example.org"))
		Expect(string(ask(http.MethodGet, "/fhir/metadata", app, nil).body)).To(ContainSubstring(`"cors":true`))
		Expect(ask(http.MethodOptions, "/fhir/", app, nil).field("resourceType")).To(Equal("CapabilityStatement"), "OPTIONS that is no preflight")
	})

	It("may not when they are others than it says", func() {
		for _, origin := range []string{
			"null", "http://app.example.org", "https://app.example.org:8443", "https://app.example.org.evil.example", "https://evil.example",
			"https://clinics.example.org", "http://localhost:3001",
		} {
			Expect(allowed(origin)).To(BeEmpty(), origin)
			Expect(preflight("/fhir/patient", origin, http.MethodPost).header).NotTo(HaveKey("Access-Control-Allow-Origin"), origin)
		}
	})

	It("may all where it says so, and none when it no longer does", func(ctx SpecContext) {
		allow(ctx, `{"allowOrigins":["*"]}`)
		Eventually(func() string { return allowed("https://evil.example") }).Within(30 * time.Second).Should(Equal("*"))
		allow(ctx, `null`)
		Eventually(func() string { return allowed(app) }).Within(30 * time.Second).Should(BeEmpty())
	})
})
