package kubectl_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

const webhookManifest = `
apiVersion: paddock.health/v1alpha1
kind: WebhookEvent
metadata: {name: %[1]s}
spec: {eventType: %[1]s, enabled: true}
---
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: %[1]s}
spec: {eventType: %[1]s, url: %[2]q, active: true, caBundle: %[3]s, ordering: PerSubject}
`

var _ = Describe("Webhooks", func() {
	for _, engine := range engines {
		It("get what kubectl changes, of records in "+engine, func(ctx SpecContext) {
			site := "events-" + engine
			startSite(ctx, site, engine)
			s := &script{namespace: site}
			receiver := localreceiver.Start()
			DeferCleanup(receiver.Close)
			for _, eventType := range []string{"user.created", "user.updated"} {
				s.feed(ctx, fmt.Sprintf(webhookManifest, eventType, receiver.URL, receiver.CABundle()), "apply -f -")
			}
			s.ok(ctx, "wait --for=condition=Active --timeout=60s webhook/user.created webhook/user.updated")
			// The API server sees a moment after the controller which webhooks get events, that of user.updated last.
			probes := 0
			Eventually(func() []localreceiver.Delivery {
				probes++
				s.feed(ctx, manifest("Practitioner", "probe", fmt.Sprintf("{name: [{family: Probe-%d}]}", probes)), "apply -f -")
				return receiver.Where(func(d localreceiver.Delivery) bool { return d.Event["type"] == "user.updated" })
			}).WithContext(ctx).WithTimeout(lag).ShouldNot(BeEmpty())
			next := 0
			// expect waits for one more event, and no other.
			expect := func(eventType string, changed ...string) {
				GinkgoHelper()
				next++
				Eventually(func() []localreceiver.Delivery { return receiver.About("Practitioner/ana") }).Within(30 * time.Second).Should(HaveLen(next))
				last := receiver.About("Practitioner/ana")[next-1]
				Expect(last.Event["type"]).To(Equal(eventType))
				Expect(fmt.Sprint(last.Event["changedFields"])).To(Equal(map[bool]string{true: "<nil>", false: fmt.Sprint(changed)}[changed == nil]))
			}

			s.feed(ctx, manifest("Practitioner", "ana", `{active: true}`), "create -f -")
			expect("user.created")
			s.ok(ctx, "patch practitioner ana --type=merge -p", `{"spec":{"active":false}}`)
			expect("user.updated", "active")
			s.feed(ctx, manifest("Practitioner", "ana", `{active: false, gender: female}`), "apply --server-side --force-conflicts -f -")
			expect("user.updated", "gender")
			s.ok(ctx, "label practitioner ana shift=night")
			s.ok(ctx, "patch practitioner ana --dry-run=server --type=merge -p", `{"spec":{"active":true}}`)
			s.ok(ctx, "patch practitioner ana --type=json -p", `[{"op":"remove","path":"/spec/gender"}]`)
			expect("user.updated", "gender")
			s.ok(ctx, "delete practitioner ana")
			s.feed(ctx, manifest("Practitioner", "ana", `{active: true}`), "apply -f -")
			expect("user.created")
			sequences := []float64{}
			for _, each := range receiver.About("Practitioner/ana") {
				sequences = append(sequences, each.Event["sequence"].(float64))
			}
			Expect(sequences).To(HaveLen(next))
			for i := 1; i < next; i++ {
				Expect(sequences[i]).To(BeNumerically(">", sequences[i-1]))
			}
		})
	}
})
