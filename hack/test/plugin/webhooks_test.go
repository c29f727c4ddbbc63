package plugin

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

const webhookManifest = `
apiVersion: paddock.health/v1alpha1
kind: WebhookEvent
metadata: {name: users, namespace: demo}
spec: {eventType: user.created, enabled: true}
---
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: partner, namespace: demo}
spec: {eventType: user.created, url: %q, active: true, caBundle: %s, retry: {delaysSeconds: []}}
`

// delivery is what webhooks commands return with -o json.
type delivery struct {
	DeliveryID, WebhookID, EventID, EventType, Status string
	Attempts                                          []struct {
		Reason string
		Status int
	}
}

var _ = Describe("webhooks", Ordered, func() {
	var receiver *localreceiver.Receiver
	var began time.Time
	site := []string{"demo", "partner", "-n", "demo", "--as-service-account", "editor"}
	webhooks := func(name string, args ...string) []string {
		return append(append([]string{"webhooks", name}, site...), args...)
	}

	BeforeAll(func(ctx SpecContext) {
		began = time.Now().Add(-time.Minute)
		receiver = localreceiver.Start()
		DeferCleanup(receiver.Close)
		apply(ctx, fmt.Sprintf(webhookManifest, receiver.URL+"/hook", receiver.CABundle()))
		kubectl(ctx, "", "wait", "--for=condition=Active", "--timeout=60s", "-n", "demo", "webhook/partner")
	})

	It("lists them with their state", func(ctx SpecContext) {
		Expect(ok(ctx, "webhooks", "list", "demo", "-n", "demo")).To(MatchRegexp(`(?m)^partner +[0-9a-f-]{36} +user\.created +` + receiver.URL + `/hook +Active`))
		Expect(ok(ctx, "__complete", "webhooks", "tail", "demo", "-n", "demo", "par")).To(HavePrefix("partner\n"))
	})

	It("tests one, shows failures, and sends deliveries again", func(ctx SpecContext) {
		good := decode[delivery](ok(ctx, webhooks("test", "-o", "json")...))
		Expect(good.Status).To(Equal("delivered"))
		Expect(receiver.Where(func(d localreceiver.Delivery) bool { return d.Header.Get("webhook-id") == good.EventID })).To(HaveLen(1))

		tail := start(webhooks("tail", "--lines", "1")...)
		Eventually(tail).Within(patience).Should(gbytes.Say(good.DeliveryID + ` user\.created \S+ delivered delivered 204 \d+ms\n`))

		receiver.Answer(http.StatusTeapot)
		got := run(ctx, webhooks("test")...)
		Expect(got.code).To(Equal(1))
		Expect(got.stdout).To(MatchRegexp(`failed +1 +status 418`))
		Expect(got.stderr).To(MatchRegexp(`^error: delivery \S+: the receiver did not accept the event \(status\): `))
		failed := strings.Fields(strings.Split(got.stdout, "\n")[1])[0]
		Eventually(tail).Within(patience).Should(gbytes.Say(failed + ` user\.created \S+ failed status 418`))

		receiver.Answer(http.StatusNoContent)
		sent := decode[delivery](ok(ctx, "webhooks", "redeliver", "demo", failed, "-n", "demo", "--as-service-account", "editor", "-o", "json"))
		Expect(sent.DeliveryID).To(Equal(failed))
		Eventually(tail).Within(patience).Should(gbytes.Say(failed + ` user\.created \S+ delivered delivered 204`))
		interrupt(tail)

		from := began.UTC().Format(time.RFC3339)
		Expect(ok(ctx, webhooks("replay", "--from", from)...)).To(MatchRegexp(`^DELIVERIES SENT AGAIN +SKIPPED\n0 +0\n$`))
		Expect(ok(ctx, webhooks("replay", "--from", from, "--status", "delivered,failed", "-o", "json")...)).To(MatchJSON(`{"count": 2, "skipped": 0}`))
		Eventually(func() []localreceiver.Delivery {
			return receiver.Where(func(d localreceiver.Delivery) bool { return d.Header.Get("webhook-id") == good.EventID })
		}).Within(patience).Should(HaveLen(2))
		Expect(decode[delivery](strings.Split(ok(ctx, webhooks("tail", "--follow=false", "-o", "json")...), "\n")[0]).WebhookID).To(Equal(good.WebhookID))
	})

	It("forwards deliveries to this machine", func(ctx SpecContext) {
		local := localreceiver.StartPlain()
		DeferCleanup(local.Close)
		session := start(webhooks("listen", "--forward-to", local.URL+"/hook")...)
		Eventually(session).Within(patience).Should(gbytes.Say(`secret: whsec_\S+\n.* connected\n`))
		created := "vet-" + uuid.NewString()
		Expect(request(ctx, http.MethodPut, "/fhir/practitioner/"+created, editor, `{"resourceType":"Practitioner","id":"`+created+`"}`).StatusCode).To(Equal(http.StatusCreated))
		Eventually(func() []localreceiver.Delivery { return local.About("Practitioner/" + created) }).Within(patience).Should(HaveLen(1))
		Eventually(session).Within(patience).Should(gbytes.Say(`user.created Practitioner/` + created + ` \S+ 204`))
		interrupt(session)
		Expect(session.Out).To(gbytes.Say(`to continue here: --last-event-id \S+\n`))
	})

	It("says what does not exist", func(ctx SpecContext) {
		Expect(fails(ctx, "webhooks", "test", "demo", "absent", "-n", "demo", "--as-service-account", "editor")).To(ContainSubstring("404 Not Found (resource_not_found)"))
		Expect(fails(ctx, "webhooks", "redeliver", "demo", uuid.NewString(), "-n", "demo", "--as-service-account", "editor")).To(ContainSubstring("404 Not Found (resource_not_found)"))
	})
})
