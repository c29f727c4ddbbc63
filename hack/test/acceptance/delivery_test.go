package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

func startReceiver() *localreceiver.Receiver {
	r := localreceiver.Start()
	DeferCleanup(r.Close)
	return r
}

const webhookManifest = `apiVersion: paddock.health/v1alpha1
kind: WebhookEvent
metadata: {name: %[2]s-on, namespace: %[1]s}
spec: {eventType: %[3]s, enabled: true}
---
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: %[2]s, namespace: %[1]s}
spec: {eventType: %[3]s, url: %[4]q, active: true, caBundle: %[5]s, ordering: PerSubject, retry: {delaysSeconds: [1, 1, 1]}}
`

// addWebhook makes a webhook for a receiver, and returns its id and what verifies its signatures.
func addWebhook(ctx SpecContext, namespace, eventType string, to *localreceiver.Receiver) (string, *standardwebhooks.Webhook) {
	GinkgoHelper()
	id := uuid.NewString()
	apply(ctx, webhookManifest, namespace, id, eventType, to.URL+"/hook", to.CABundle())
	kubectl(ctx, "wait", "--for=condition=Active", "--timeout=1m", "-n", namespace, "webhook/"+id)
	secret := kubectl(ctx, "get", "webhook", id, "-n", namespace, "-o", "jsonpath={.status.secretName}")
	key := kubectl(ctx, "get", "secret", secret, "-n", namespace, "-o", "go-template={{.data.secret | base64decode}}")
	verifier, err := standardwebhooks.NewWebhook(key)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		kubectl(ctx, "delete", "webhook/"+id, "webhookevent/"+id+"-on", "-n", namespace)
	})
	return id, verifier
}

var _ = Describe("Webhooks", func() {
	for _, site := range []string{"demo", "demo-postgres"} {
		Describe("of site "+site, Ordered, func() {
			base := "/site/" + site
			var users *localreceiver.Receiver
			var verifier *standardwebhooks.Webhook
			var webhookID, failingID, practitioner string

			BeforeAll(func(ctx SpecContext) {
				failing := startReceiver()
				failing.Answer(http.StatusServiceUnavailable)
				failingID, _ = addWebhook(ctx, site, "user.created", failing)
				users = startReceiver()
				webhookID, verifier = addWebhook(ctx, site, "user.created", users)
				practitioner = "vet-" + uuid.NewString()
			})

			It("get what happens to records, signed", func() {
				made := send(request{method: "PUT", url: paddock.URLs[0] + base + "/fhir/practitioner/" + practitioner, body: `{"resourceType":"Practitioner","id":"` + practitioner + `","active":true}`})
				Expect(made.status).To(Equal(http.StatusCreated), string(made.body))
				subject := "Practitioner/" + practitioner
				Eventually(func() []localreceiver.Delivery { return users.About(subject) }).Should(HaveLen(1))
				got := users.About(subject)[0]
				Expect(verifier.Verify(got.Body, got.Header)).To(Succeed())
				Expect(got.Event).To(HaveKeyWithValue("type", "user.created"))
				Expect(got.Event).To(HaveKeyWithValue("id", got.Header.Get("webhook-id")))
				Expect(got.Event).To(HaveKeyWithValue("siteId", site))
				read := send(request{method: "GET", url: paddock.URLs[0] + base + "/fhir/practitioner/" + practitioner})
				var want any
				Expect(json.Unmarshal(read.body, &want)).To(Succeed())
				Expect(got.Event["data"]).To(Equal(want))
			})

			It("get which fields changed", func(ctx SpecContext) {
				updates := startReceiver()
				_, verify := addWebhook(ctx, site, "user.updated", updates)
				changed := send(request{
					method: "PATCH", url: paddock.URLs[1] + base + "/fhir/practitioner/" + practitioner, body: `[{"op":"replace","path":"/active","value":false}]`,
					header: map[string]string{"Content-Type": "application/json-patch+json"},
				})
				Expect(changed.status).To(Equal(http.StatusOK), string(changed.body))
				subject := "Practitioner/" + practitioner
				Eventually(func() []localreceiver.Delivery { return updates.About(subject) }).Should(HaveLen(1))
				got := updates.About(subject)[0]
				Expect(verify.Verify(got.Body, got.Header)).To(Succeed())
				Expect(got.Event["changedFields"]).To(Equal([]any{"active"}))
			})

			It("get what programs send, in the order of its subject, through failures", func() {
				subject := "case/" + uuid.NewString()
				users.Answer(http.StatusServiceUnavailable)
				for n := range 5 {
					sent := send(request{method: "POST", url: balanced + base + "/ahds/v1/event", body: fmt.Sprintf(`{"type":"user.created","subject":%q,"data":{"n":%d}}`, subject, n)})
					Expect(sent.status).To(Equal(http.StatusAccepted), string(sent.body))
				}
				Eventually(func() []localreceiver.Delivery { return users.About(subject) }).ShouldNot(BeEmpty())
				users.Answer(http.StatusOK)
				var order []any
				Eventually(func() []any {
					order = nil
					last := -1.0
					for _, each := range users.About(subject) {
						n := each.Event["data"].(map[string]any)["n"].(float64)
						Expect(n).To(BeNumerically(">=", last), "an event came after a later one")
						if n > last {
							order = append(order, n)
						}
						last = n
					}
					return order
				}).Within(30 * time.Second).Should(HaveLen(5))
			})

			It("have a log, and are tested and repeated on request", func(ctx SpecContext) {
				hook := paddock.URLs[0] + base + "/ahds/v1/webhook/" + webhookID
				tested := send(request{method: "POST", url: hook + "/test"})
				Expect(tested.status).To(Equal(http.StatusAccepted), string(tested.body))
				id := tested.field("deliveryId").(string)
				Eventually(func() any { return send(request{method: "GET", url: hook + "/delivery/" + id}).field("status") }).Should(Equal("delivered"))
				count := func() int {
					return len(users.Where(func(d localreceiver.Delivery) bool { return d.Header.Get("webhook-id") == tested.field("eventId") }))
				}
				Expect(count()).To(Equal(1))
				again := send(request{method: "POST", url: hook + "/delivery/" + id + "/redeliver"})
				Expect(again.status).To(Equal(http.StatusAccepted), string(again.body))
				Eventually(count).Should(Equal(2))
				Eventually(func() string {
					return kubectl(ctx, "get", "webhook", webhookID, "-n", site, "-o", "jsonpath={.status.lastSuccess} {.status.pending}")
				}).Within(60 * time.Second).Should(MatchRegexp(`^20\S+ 0$`))
			})

			It("have a condition that says why deliveries fail", func(ctx SpecContext) {
				Eventually(func() string {
					return kubectl(ctx, "get", "webhook", failingID, "-n", site, "-o",
						`jsonpath={range .status.conditions[?(@.type=="Delivering")]}{.status} {.reason} {.message}{end}`)
				}).Within(60 * time.Second).Should(And(HavePrefix("False Failing "), ContainSubstring("503")))
			})
		})
	}
})
