//go:build linux

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

// eventManifest switches a type on for a receiver, which gets the events of a subject in order.
const eventManifest = `apiVersion: paddock.health/v1alpha1
kind: WebhookEvent
metadata: {name: load, namespace: %[1]s}
spec: {eventType: user.created, enabled: true}
---
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: load, namespace: %[1]s}
spec: {eventType: user.created, url: %[2]q, active: true, caBundle: %[3]s, ordering: PerSubject}
`

// startReceiver receives webhooks at the node's address, which the chart's values allow.
func startReceiver() *localreceiver.Receiver {
	GinkgoHelper()
	certFile, keyFile, err := node.Cluster.ServingCertificate("receiver", nil, node.Address())
	Expect(err).NotTo(HaveOccurred())
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", net.JoinHostPort(node.Address().String(), "0"))
	Expect(err).NotTo(HaveOccurred())
	receiver := localreceiver.StartAt(listener, certificate)
	DeferCleanup(receiver.Close)
	return receiver
}

// arrivalTimeout is more than the time until all events have arrived. In Postgres, an attempt of a
// killed process is repeated 75 to 105 s after its start, and the later events of its subject are sent
// one after the other only then.
const arrivalTimeout = 5 * time.Minute

// eventLoad sends events of a site, a number in each that grows with its subject.
type eventLoad struct {
	namespace string
	client    *client
	receiver  *localreceiver.Receiver
	cancel    context.CancelFunc
	done      sync.WaitGroup

	mu       sync.Mutex
	accepted []string
	failures []string
}

// startEventLoad makes a webhook in the site's namespace and sends events until stop.
func startEventLoad(ctx context.Context, site string) *eventLoad {
	GinkgoHelper()
	receiver, clinic := startReceiver(), "clinic-"+site
	file := filepath.Join(GinkgoT().TempDir(), "webhook.yaml")
	manifest := fmt.Sprintf(eventManifest, clinic, receiver.URL, receiver.CABundle())
	Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
	kubectl(ctx, "apply", "--server-side", "--filename", file)
	kubectl(ctx, "-n", clinic, "wait", "--for=condition=Active", "--timeout=1m", "webhook/load")
	ctx, cancel := context.WithCancel(ctx)
	l := &eventLoad{namespace: clinic, client: newClient(ctx, site).ahds(), receiver: receiver, cancel: cancel}
	l.awaitTargets(ctx)
	for writer := range writers {
		l.done.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				l.send(context.WithoutCancel(ctx), fmt.Sprintf("load/%s-%d", site, writer), n)
				select {
				case <-ctx.Done():
				case <-time.After(writePause):
				}
			}
		})
	}
	DeferCleanup(l.stop)
	return l
}

// probes is the number of events by which awaitTargets reaches each replica: the ingress sends requests to them in turn.
const probes = 10

// awaitTargets waits until all API servers send events to the webhook. They see it a moment after the controller.
func (l *eventLoad) awaitTargets(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		subject := "probe/" + uuid.NewString()
		for range probes {
			status, answer, err := l.client.send(ctx, http.MethodPost, "event",
				fmt.Sprintf(`{"eventId":%q,"type":"user.created","subject":%q,"data":{}}`, uuid.NewString(), subject))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(http.StatusAccepted), string(answer))
		}
		g.Eventually(ctx, func() int { return len(l.receiver.About(subject)) }).WithTimeout(10 * time.Second).Should(BeNumerically(">=", probes))
	}).Should(Succeed())
}

func (l *eventLoad) send(ctx context.Context, subject string, n int) {
	id := uuid.NewString()
	body := fmt.Sprintf(`{"eventId":%q,"type":"user.created","subject":%q,"data":{"n":%d}}`, id, subject, n)
	status, answer, err := l.client.send(ctx, http.MethodPost, "event", body)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || status != http.StatusAccepted {
		l.failures = append(l.failures, fmt.Sprintf("%d %s %v", status, answer, err))
		return
	}
	l.accepted = append(l.accepted, id)
}

func (l *eventLoad) stop() {
	l.cancel()
	l.done.Wait()
}

func (l *eventLoad) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accepted)
}

// awaitMore returns when some more events were accepted.
func (l *eventLoad) awaitMore(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, l.count).Should(BeNumerically(">", l.count()+10*writers))
}

// verify stops the load and waits until every accepted event arrived. Those of a subject came in
// order, but for what came again.
func (l *eventLoad) verify(ctx context.Context) {
	GinkgoHelper()
	l.stop()
	got := func() map[string]bool {
		arrived := map[string]bool{}
		for _, each := range l.deliveries() {
			arrived[each.Header.Get("webhook-id")] = true
		}
		return arrived
	}
	Eventually(ctx, func() []string {
		var missing []string
		arrived := got()
		for _, id := range l.accepted {
			if !arrived[id] {
				missing = append(missing, id)
			}
		}
		return missing
	}).WithTimeout(arrivalTimeout).Should(BeEmpty(), "accepted events that did not arrive")
	AddReportEntry("events", fmt.Sprintf("%d accepted, %d deliveries, failures %v", len(l.accepted), len(l.deliveries()), l.failures), ReportEntryVisibilityAlways)
	seen, last := map[string]bool{}, map[string]float64{}
	for _, each := range l.deliveries() {
		id, subject := each.Header.Get("webhook-id"), each.Event["subject"].(string)
		n := each.Event["data"].(map[string]any)["n"].(float64)
		if before, ok := last[subject]; ok && !seen[id] {
			Expect(n).To(BeNumerically(">", before), "an event of %s overtook one before it", subject)
		}
		if !seen[id] {
			seen[id], last[subject] = true, n
		}
	}
}

func (l *eventLoad) deliveries() []localreceiver.Delivery {
	return l.receiver.Where(func(d localreceiver.Delivery) bool {
		subject, _ := d.Event["subject"].(string)
		return strings.HasPrefix(subject, "load/")
	})
}

// describeEvents needs the sites oak and elm.
func describeEvents() {
	It("delivers every event through a kill and an upgrade of the processes that deliver", func(ctx SpecContext) {
		loads := []*eventLoad{startEventLoad(ctx, "oak"), startEventLoad(ctx, "elm")}
		awaitMore := func() {
			for _, l := range loads {
				l.awaitMore(ctx)
			}
		}
		awaitMore()
		By("killing a process")
		kill(ctx, namespace, podNames(ctx, "app.kubernetes.io/component=delivery")[0])
		awaitMore()
		By("replacing all processes")
		kubectl(ctx, "-n", namespace, "rollout", "restart", "deployment/paddock-delivery")
		kubectl(ctx, "-n", namespace, "rollout", "status", "--timeout=2m", "deployment/paddock-delivery")
		awaitMore()
		for _, l := range loads {
			By("waiting for the events of " + l.namespace)
			l.verify(ctx)
			Expect(l.failures).To(BeEmpty())
			kubectl(ctx, "-n", l.namespace, "delete", "webhook/load", "webhookevent/load")
		}
	}, NodeTimeout(10*time.Minute))
}
