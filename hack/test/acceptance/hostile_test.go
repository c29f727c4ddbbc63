package acceptance

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

const (
	// hostileType is a type of events that no other spec uses.
	hostileType = "therapeutic.updated"
	// hostileFlood is how many events follow the first one. It is more than the attempts that a
	// webhook gets at a time, so that some wait for the receivers that take their time.
	hostileFlood = 48
	// maxBuffered is more than the operating system holds of an answer that nobody reads.
	maxBuffered = 16 << 20
	// maxResponse is how much of an answer the log keeps.
	maxResponse = 4 << 10
	// patience is the time limit of an attempt, in seconds, of which the outcome is not a timeout: a
	// busy machine takes more than a second for the TLS handshakes of all receivers.
	patience = 20
)

// hostileManifest has one attempt for each delivery, unless pauses are given.
const hostileManifest = `---
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: %[2]s, namespace: %[1]s, labels: {spec: hostile}}
spec: {eventType: %[3]s, url: %[4]q, active: true, %[5]s, timeoutSeconds: %[6]d, retry: {delaysSeconds: [%[7]s]}}
`

// outcome is what the log has of a delivery after its first attempt. HTTP is 0 without an answer.
type outcome struct {
	Status, Reason string
	HTTP           int
}

// hostileTarget is a webhook and what its log has to have.
type hostileTarget struct {
	name string
	// receiver is nil where there is only a url.
	receiver *localreceiver.Hostile
	url      string
	// distrusted is a webhook without the receiver's certificate in its caBundle.
	distrusted bool
	// timeout is in seconds, and patience if it is zero.
	timeout int
	delays  string
	want    outcome
	id      string
}

func (h *hostileTarget) manifest(namespace string) string {
	ca, url := "signing: HMAC", h.url // a caBundle cannot be empty
	if h.receiver != nil {
		url = h.receiver.URL + "/hook"
		if !h.distrusted {
			ca = "caBundle: " + h.receiver.CABundle()
		}
	}
	return fmt.Sprintf(hostileManifest, namespace, h.id, hostileType, url, ca, cmp.Or(h.timeout, patience), h.delays)
}

// hostileTargets starts the hostile receivers. Those that redirect lead to the trap.
func hostileTargets(trap *localreceiver.Receiver) []*hostileTarget {
	start := func(answer localreceiver.Misbehaviour) *localreceiver.Hostile {
		h := localreceiver.StartHostile(answer)
		DeferCleanup(h.Close)
		return h
	}
	overHTTP2 := localreceiver.StartHostileHTTP2(localreceiver.AnswerGigabyte)
	DeferCleanup(overHTTP2.Close)
	status := localreceiver.AnswerStatus
	targets := []*hostileTarget{
		{name: "slow", receiver: start(localreceiver.AnswerNothing), timeout: 1, want: outcome{"failed", "timeout", 0}},
		{name: "hangs after headers", receiver: start(localreceiver.AnswerHeaderOnly), timeout: 15, want: outcome{"failed", "timeout", 200}},
		{name: "redirects to 127.0.0.1", receiver: start(status(http.StatusTemporaryRedirect, "Location", trap.URL+"/hook")), want: outcome{"failed", "redirect", 307}},
		{name: "redirects to 169.254.169.254", receiver: start(status(http.StatusFound, "Location", "http://169.254.169.254/latest/meta-data")), want: outcome{"failed", "redirect", 302}},
		{name: "410", receiver: start(status(http.StatusGone, "", "")), delays: "1", want: outcome{"undelivered", "gone", 410}},
		{name: "429", receiver: start(status(http.StatusTooManyRequests, "Retry-After", "3600")), delays: "1", want: outcome{"pending", "throttled", 429}},
		{name: "503", receiver: start(status(http.StatusServiceUnavailable, "", "")), want: outcome{"failed", "throttled", 503}},
		{name: "gigabyte", receiver: start(localreceiver.AnswerGigabyte), want: outcome{"delivered", "delivered", 200}},
		{name: "gigabyte over HTTP/2", receiver: overHTTP2, want: outcome{"delivered", "delivered", 200}},
		{name: "gigabyte of header", receiver: start(localreceiver.AnswerGigabyteOfHeader), want: outcome{"failed", "connection", 0}},
		{name: "bad certificate", receiver: start(status(http.StatusNoContent, "", "")), distrusted: true, want: outcome{"failed", "certificate", 0}},
		{name: "private network", url: "https://10.0.0.1/hook", want: outcome{"failed", "forbidden_address", 0}},
		{name: "169.254.169.254", url: "https://169.254.169.254/latest/meta-data", want: outcome{"failed", "forbidden_address", 0}},
		{name: "kubernetes.default.svc", url: "https://kubernetes.default.svc/api", want: outcome{"failed", "forbidden_address", 0}},
	}
	for _, target := range targets {
		target.id = uuid.NewString()
	}
	return targets
}

// A name that resolves to another address at the second look-up needs a DNS server that the
// process asks: TestRebinding of apiserver/delivery has that one.
var _ = Describe("Hostile receivers", func() {
	for _, site := range demos {
		Describe("of site "+site, Ordered, func() {
			base := "/site/" + site + "/ahds/v1"
			var targets []*hostileTarget
			var trap *localreceiver.Receiver
			var good []*localreceiver.Receiver
			var goodIDs []string

			log := func(id, query string) response {
				GinkgoHelper()
				answer := send(request{method: "GET", url: paddock.URLs[0] + base + "/webhook/" + id + "/delivery" + query})
				Expect(answer.status).To(Equal(http.StatusOK), string(answer.body))
				return answer
			}
			// total counts deliveries of a webhook by their status.
			total := func(id, status string) int {
				GinkgoHelper()
				return int(log(id, "?status="+status).field("meta", "total").(float64))
			}
			// oldest is the delivery of the first event.
			oldest := func(id string) map[string]any {
				GinkgoHelper()
				all := log(id, "").field("data").([]any)
				if len(all) == 0 {
					return nil
				}
				return all[len(all)-1].(map[string]any)
			}
			publish := func(subject string) string {
				GinkgoHelper()
				sent := send(request{method: "POST", url: balanced + base + "/event", body: fmt.Sprintf(`{"type":%q,"subject":%q,"data":{}}`, hostileType, subject)})
				Expect(sent.status).To(Equal(http.StatusAccepted), string(sent.body))
				return sent.field("eventId").(string)
			}
			find := func(name string) *hostileTarget {
				GinkgoHelper()
				for _, target := range targets {
					if target.name == name {
						return target
					}
				}
				Fail("no hostile receiver is called " + name)
				return nil
			}

			BeforeAll(func(ctx SpecContext) {
				trap = startReceiver()
				targets = hostileTargets(trap)
				manifest := &strings.Builder{}
				fmt.Fprintf(manifest, "apiVersion: paddock.health/v1alpha1\nkind: WebhookEvent\nmetadata: {name: hostile, namespace: %s}\nspec: {eventType: %s, enabled: true}\n", site, hostileType)
				for _, target := range targets {
					manifest.WriteString(target.manifest(site))
				}
				for range 3 {
					receiver, id := startReceiver(), uuid.NewString()
					good, goodIDs = append(good, receiver), append(goodIDs, id)
					fmt.Fprintf(manifest, hostileManifest, site, id, hostileType, receiver.URL+"/hook", "caBundle: "+receiver.CABundle(), 30, "1, 1, 1")
				}
				apply(ctx, "%s", manifest.String())
				DeferCleanup(func(ctx SpecContext) {
					kubectl(ctx, "delete", "webhooks", "-l", "spec=hostile", "-n", site)
					kubectl(ctx, "delete", "webhookevent/hostile", "-n", site)
				})
				kubectl(ctx, "wait", "--for=condition=Active", "--timeout=1m", "-n", site, "webhooks", "-l", "spec=hostile")
			})

			It("have a reason in the log, and nothing else happens", func(ctx SpecContext) {
				publish("first")
				for _, target := range targets {
					By(target.name)
					Eventually(func() outcome {
						delivery := oldest(target.id)
						attempts, _ := delivery["attempts"].([]any)
						if len(attempts) != 1 {
							return outcome{Reason: fmt.Sprintf("%d attempts", len(attempts))}
						}
						attempt := attempts[0].(map[string]any)
						code, _ := attempt["status"].(float64)
						return outcome{delivery["status"].(string), attempt["reason"].(string), int(code)}
					}).Within(2 * patience * time.Second).Should(Equal(target.want))
				}

				By("redirects are not followed")
				Expect(trap.Where(func(localreceiver.Delivery) bool { return true })).To(BeEmpty())

				By("the receiver with a certificate that is not trusted gets nothing")
				Expect(find("bad certificate").receiver.Requests.Load()).To(BeZero())

				By("what is sent without an end is not read to the end")
				for _, name := range []string{"gigabyte", "gigabyte over HTTP/2", "gigabyte of header"} {
					sender := find(name).receiver
					Eventually(sender.Sending.Load).Within(10*time.Second).Should(BeZero(), name+": the connection stays open")
					Expect(sender.Written.Load()).To(And(BeNumerically(">", 0), BeNumerically("<", maxBuffered)), name)
				}
				for _, name := range []string{"gigabyte", "gigabyte over HTTP/2"} {
					attempt := oldest(find(name).id)["attempts"].([]any)[0].(map[string]any)
					Expect(attempt["response"]).To(HaveLen(maxResponse), name)
				}

				By("the receiver that answers 429 says when it is tried again")
				delivery := oldest(find("429").id)
				next, err := time.Parse(time.RFC3339, delivery["nextAttemptAt"].(string))
				Expect(err).NotTo(HaveOccurred())
				made, err := time.Parse(time.RFC3339, delivery["attempts"].([]any)[0].(map[string]any)["at"].(string))
				Expect(err).NotTo(HaveOccurred())
				Expect(next.Sub(made)).To(BeNumerically(">=", time.Hour))
			})

			It("disable their webhook by 410", func(ctx SpecContext) {
				gone := find("410").id
				condition := `jsonpath={.status.conditions[?(@.type=="Disabled")].status} {.status.conditions[?(@.type=="Disabled")].reason}`
				Eventually(func() string { return kubectl(ctx, "get", "webhook", gone, "-n", site, "-o", condition) }).Should(Equal("True Gone"))
				Eventually(func() string { // the controller may record that the Webhook is not Active before or after this
					return kubectl(ctx, "get", "events", "-n", site, "--field-selector", "reason=Disabled,involvedObject.name="+gone, "-o", `jsonpath={range .items[*]}{.type} {.message}{"\n"}{end}`)
				}).Should(MatchRegexp(`(?m)^Warning .*status 410`))
				Eventually(func() response {
					return send(request{method: "GET", url: paddock.URLs[0] + base + "/webhook/" + gone})
				}).Should(WithTransform(func(r response) any { return r.field("disabledReason") }, ContainSubstring("status 410")))
			})

			It("do not keep the good ones from getting everything", func() {
				var events []string
				for n := range hostileFlood {
					events = append(events, publish(fmt.Sprintf("flood/%d", n)))
				}
				for i, receiver := range good {
					Eventually(func() []string {
						ids := []string{}
						for _, each := range receiver.Where(func(d localreceiver.Delivery) bool { return d.Event["subject"] != "first" }) {
							ids = append(ids, each.Header.Get("webhook-id"))
						}
						return ids
					}).Within(time.Minute).Should(ContainElements(events))
					Eventually(func() int { return total(goodIDs[i], "delivered") }).Should(Equal(1 + hostileFlood))
				}
				By("the hostile ones are not done")
				for _, name := range []string{"slow", "hangs after headers", "429"} {
					Eventually(func() int { return total(find(name).id, "pending") }).Should(BeNumerically(">", 0), name)
				}
				By("the one that is disabled gets nothing more")
				gone := find("410")
				Eventually(func() int { return total(gone.id, "undelivered") }).Should(Equal(1 + hostileFlood))
				Expect(gone.receiver.Requests.Load()).To(BeEquivalentTo(1))
				Expect(trap.Where(func(localreceiver.Delivery) bool { return true })).To(BeEmpty())
			})
		})
	}
})
