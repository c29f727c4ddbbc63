package acceptance

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/hack/dev/localissuer"
)

// concurrency is the number of concurrent requests in specs with many requests, because each response comes
// after a delay (access.AwaitAbsent).
const concurrency = 8

// patientReader lets the account reader read patients: namespace.
const patientReader = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: %[1]s}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: [patients], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: %[1]s}]
`

var _ = Describe("A hidden site", Ordered, Serial, func() {
	const audience = "paddock.health/clinic-hidden/hidden"
	// The callers have a good token for the site: one without any right, one that may read patients, and the editor.
	var stranger, reader, editor string

	BeforeAll(func(ctx SpecContext) {
		apply(ctx, siteManifest, "clinic-hidden", "hidden", "hidden", "Delete")
		waitReady(ctx, "clinic-hidden", "hidden")
		kubectl(ctx, "patch", "site", "hidden", "-n", "clinic-hidden", "--type=merge", "-p",
			`{"spec":{"access":{"hidden":true},"cors":{"allowOrigins":["https://app.example.org"]}}}`)
		editor = editorOf(ctx, "clinic-hidden", "hidden")
		for account, made := range map[string]*string{"stranger": &stranger, "reader": &reader} {
			kubectl(ctx, "create", "serviceaccount", account, "-n", "clinic-hidden")
			var err error
			*made, err = paddock.Token(ctx, "clinic-hidden", account, audience, time.Hour)
			Expect(err).NotTo(HaveOccurred())
		}
		apply(ctx, patientReader, "clinic-hidden")
		for _, base := range paddock.URLs {
			Eventually(func() int {
				return send(request{method: "GET", url: base + "/site/hidden/fhir/metadata", token: "none"}).status
			}).Should(Equal(http.StatusNotFound))
		}
	})

	// Ids of requests differ, and bodies name the site of the path.
	ids := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	normal := func(site string, answer response) (int, string, http.Header) {
		header := answer.header.Clone()
		for _, name := range []string{"X-Request-Id", "Date", "Content-Length"} {
			header.Del(name)
		}
		text := ids.ReplaceAllString(string(answer.body), "ID")
		return answer.status, regexp.MustCompile(`\b`+site+`\b`).ReplaceAllString(text, "SITE"), header
	}
	ways := []request{
		{method: "GET", url: "/fhir/patient"},
		{method: "GET", url: "/fhir/patient?colour=brown"},
		{method: "GET", url: "/fhir/patient/rex"},
		{method: "PUT", url: "/fhir/patient/rex", body: `{"resourceType":"Patient","id":"rex"}`},
		{method: "POST", url: "/fhir/patient", body: `{`},
		{method: "POST", url: "/fhir/patient/$validate", body: `{}`},
		{method: "POST", url: "/fhir", body: `{"resourceType":"Bundle","type":"batch"}`},
		{method: "GET", url: "/fhir/$export", header: map[string]string{"Prefer": "respond-async"}},
		{method: "GET", url: "/fhir/$export?_type=Pet", header: map[string]string{"Prefer": "respond-async"}},
		{method: "GET", url: "/fhir/$export/1"},
		{method: "DELETE", url: "/fhir/$export/1"},
		{method: "POST", url: "/fhir/$import", body: `{}`, header: map[string]string{"Content-Type": "application/fhir+ndjson"}},
		{method: "GET", url: "/fhir/_history"},
		{method: "DELETE", url: "/fhir/pet/1"},
		{method: "GET", url: "/fhir/metadata"},
		{method: "OPTIONS", url: "/fhir"},
		{method: "OPTIONS", url: "/fhir/patient", header: map[string]string{"Origin": "https://app.example.org", "Access-Control-Request-Method": "GET"}},
		{method: "GET", url: "/fhir/metadata", header: map[string]string{"Origin": "https://app.example.org"}},
		{method: "GET", url: "/ahds/v1/availability-slot"},
		{method: "GET", url: "/ahds/v1/webhook"},
		{method: "GET", url: "/ahds/v1/availability-slot.ics?token=x"},
		{method: "GET", url: "/ahds/v1/availability-slot.ics?colour=brown"},
		{method: "GET", url: "/ahds/v1/availability-slot.ics?%"},
		{method: "GET", url: "/ahds/v2"},
		{method: "GET", url: ""},
		{method: "GET", url: "", header: map[string]string{"Accept": "text/html"}},
		{method: "GET", url: "/openapi.json"},
		{method: "GET", url: "/docs"},
		{method: "GET", url: "/docs/reference.css"},
		{method: "GET", url: "/docs/operations/readPatient"},
		{method: "GET", url: "/docs/operations/none", header: map[string]string{"Accept": "text/html"}},
		{method: "GET", url: "/docs/schemas/Patient"},
		{method: "GET", url: "/console"},
		{method: "GET", url: "/console", header: map[string]string{"Accept": "text/html"}},
		{method: "GET", url: "/console/callback", header: map[string]string{"Accept": "text/html"}},
		{method: "POST", url: "/openapi.json", body: "{}"},
	}

	It("answers as one that does not exist, byte for byte", func(ctx SpecContext) {
		foreign, err := paddock.Token(ctx, "clinic-hidden", "reader", "elsewhere", time.Hour)
		Expect(err).NotTo(HaveOccurred())
		tokens := map[string]string{
			"without rights": stranger, "without a token": "none", "a token for another audience": foreign,
			"an opaque token": "nonsense", "a forged token": stranger[:len(stranger)-6] + "AAAAAA",
		}
		for name, used := range tokens {
			answers := make([][2]response, len(ways))
			var group errgroup.Group
			group.SetLimit(concurrency)
			for n, way := range ways {
				group.Go(func() error {
					defer GinkgoRecover()
					for i, site := range []string{"hidden", "absent"} {
						r := way
						r.url, r.token = balanced+"/site/"+site+way.url, used
						answers[n][i] = send(r)
					}
					return nil
				})
			}
			Expect(group.Wait()).To(Succeed())
			for n, way := range ways {
				status, body, header := normal("hidden", answers[n][0])
				absentStatus, absentBody, absentHeader := normal("absent", answers[n][1])
				Expect(status).To(BeNumerically(">=", 400), "%s: %s %s", name, way.method, way.url)
				Expect(status).To(Equal(absentStatus), "%s: %s %s: %s", name, way.method, way.url, body)
				Expect(body).To(Equal(absentBody), "%s: %s %s", name, way.method, way.url)
				Expect(header).To(Equal(absentHeader), "%s: %s %s", name, way.method, way.url)
			}
		}
		Expect(send(request{method: "GET", url: balanced + "/site/hidden/fhir/patient", token: stranger}).status).To(Equal(http.StatusNotFound))
	}, NodeTimeout(3*time.Minute))

	It("answers tokens of its issuers as one that does not exist, byte for byte", func(ctx SpecContext) {
		issuer, other := startIssuer(ctx), startIssuer(ctx)
		serveTenant(ctx, "clinic-veiled", issuer, "RBAC")
		kubectl(ctx, "patch", "site", "clinic-veiled", "-n", "clinic-veiled", "--type=merge", "-p",
			`{"spec":{"access":{"hidden":true,"kubernetes":{"apiServerAudience":true}}}}`)
		for _, base := range paddock.URLs {
			Eventually(func() int {
				return send(request{method: "GET", url: base + "/site/clinic-veiled/fhir/metadata", token: "none"}).status
			}).Should(Equal(http.StatusNotFound))
		}
		good := issuer.Claims("clinic-veiled", "clinic-veiled")
		tokens, err := issuer.BadTokens(ctx, good, other, "paddock.health/clinic-veiled/clinic-veiled")
		Expect(err).NotTo(HaveOccurred())
		tokens["one word"] = "nonsense"
		tokens["of a caller without rights"], err = issuer.SignClaims(ctx, localissuer.With(localissuer.With(good, "sub", "stranger"), "groups", nil))
		Expect(err).NotTo(HaveOccurred())
		member, err := issuer.SignClaims(ctx, good)
		Expect(err).NotTo(HaveOccurred())
		compare := func(name string) {
			GinkgoHelper()
			for _, path := range []string{"/fhir/patient", "/fhir/metadata"} {
				var answers [2]response
				for i, site := range []string{"clinic-veiled", "absent"} {
					answers[i] = send(request{method: "GET", url: balanced + "/site/" + site + path, token: tokens[name]})
					status, body, header := normal(site, answers[i])
					answers[i] = response{status: status, body: []byte(body), header: header}
				}
				Expect(answers[0].status).To(Equal(answers[1].status), "%s: %s: %s", name, path, answers[0].body)
				Expect(string(answers[0].body)).To(Equal(string(answers[1].body)), "%s: %s", name, path)
				Expect(answers[0].header).To(Equal(answers[1].header), "%s: %s", name, path)
			}
		}
		var group errgroup.Group
		group.SetLimit(concurrency)
		for name := range tokens {
			group.Go(func() error {
				defer GinkgoRecover()
				compare(name)
				return nil
			})
		}
		Expect(group.Wait()).To(Succeed())
		for range paddock.URLs {
			Expect(send(request{method: "GET", url: balanced + "/site/clinic-veiled/fhir/patient", token: member}).status).To(Equal(http.StatusOK))
		}
	}, NodeTimeout(3*time.Minute))

	It("serves those with rights, and names the right that they lack", func() {
		at := func(path, token string) response {
			return send(request{method: "GET", url: balanced + "/site/hidden/fhir" + path, token: token})
		}
		Expect(at("/patient", editor).status).To(Equal(http.StatusOK))
		Expect(at("/metadata", editor).status).To(Equal(http.StatusOK))
		Expect(at("/metadata", reader).status).To(Equal(http.StatusOK))
		for _, path := range []string{"/", "/openapi.json", "/docs"} {
			Expect(send(request{method: "GET", url: balanced + "/site/hidden" + path, token: reader}).status).To(Equal(http.StatusOK), path)
		}
		Expect(at("/patient/rex", reader).status).To(Equal(http.StatusNotFound))
		answer := at("/patient", reader)
		Expect(answer.status).To(Equal(http.StatusForbidden))
		Expect(string(answer.body)).To(ContainSubstring("may not list patients"))
	})

	It("answers as one that does not exist, while kube-apiserver cannot be asked", func(ctx SpecContext) {
		fresh, err := paddock.Token(ctx, "clinic-hidden", "stranger", audience, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.APIServer().Kill()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(cluster.APIServer().Restart(ctx)).To(Succeed())
			Eventually(func() int {
				return send(request{method: "GET", url: balanced + "/site/demo/fhir/patient?_count=1"}).status
			}).Should(Equal(http.StatusOK))
			// A program tries a watch again up to 30 s after it has failed, and the controller may have
			// restarted. Later specs need both.
			Eventually(func() error { return tryApply(ctx, siteManifest, "clinic-watched", "watched", "watched", "Delete") }).Should(Succeed())
			waitReady(ctx, "clinic-watched", "watched")
		})
		for range 2 { // a second request may meet what the first one left
			for _, way := range []request{
				{method: "GET", url: "/fhir/patient"},
				{method: "PUT", url: "/fhir/patient/rex", body: `{"resourceType":"Patient","id":"rex"}`},
				{method: "GET", url: "/ahds/v1/availability-slot"},
				{method: "GET", url: "/fhir/metadata"},
			} {
				var answers [2]response
				for i, site := range []string{"hidden", "absent"} {
					r := way
					r.url, r.token = balanced+"/site/"+site+way.url, fresh
					answers[i] = send(r)
					status, body, header := normal(site, answers[i])
					answers[i].status, answers[i].body, answers[i].header = status, []byte(body), header
					Expect(status).To(Equal(http.StatusServiceUnavailable), "%s: %s", site, body)
					Expect(body).To(ContainSubstring(`"unavailable"`))
				}
				Expect(string(answers[0].body)).To(Equal(string(answers[1].body)))
				Expect(answers[0].header).To(Equal(answers[1].header))
			}
		}
	}, NodeTimeout(2*time.Minute))

	It("takes the time that a site takes which does not exist", func(ctx SpecContext) {
		sites := []string{"hidden", "absent"}
		taken := map[string][]time.Duration{}
		round := 0
		measure := func() {
			round++
			slices.Reverse(sites) // neither is always the second
			for _, site := range sites {
				// A token of its own for each round, so that nothing is remembered of it, and the verdict neither.
				account := fmt.Sprintf("timed-%d-%s", round, site)
				kubectl(ctx, "create", "serviceaccount", account, "-n", "clinic-hidden")
				fresh, err := paddock.Token(ctx, "clinic-hidden", account, audience, time.Hour)
				Expect(err).NotTo(HaveOccurred())
				began := time.Now()
				answer := send(request{method: "GET", url: balanced + "/site/" + site + "/fhir/patient", token: fresh})
				taken[site] = append(taken[site], time.Since(began))
				Expect(answer.status).To(Equal(http.StatusNotFound))
			}
		}
		median := func(site string) float64 {
			return slices.Sorted(slices.Values(taken[site]))[round/2].Seconds()
		}
		for range 14 {
			measure()
		}
		// On a busy machine it takes more rounds to tell a difference from chance. One that there
		// is, such as a wait for what is stored, does not go away.
		Eventually(ctx, func() float64 {
			measure()
			return median("hidden") / median("absent")
		}).WithTimeout(2 * time.Minute).WithPolling(time.Millisecond).Should(And(BeNumerically(">", 0.8), BeNumerically("<", 1.25)))
	}, NodeTimeout(3*time.Minute))
})
