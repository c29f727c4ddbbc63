package robustness

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

var (
	eventCount    = flag.Int("events", 120, "how many events publishers make at least while processes are killed")
	deliveryKills = flag.Int("delivery-kills", 4, "how often processes are killed at least while publishers make events")
	// A job of a process that died is taken over after 75 s.
	drainPatience = flag.Duration("drain-patience", 4*time.Minute, "how long the queue may take to empty once nothing is killed any more; at least 90s")
)

const (
	publishers = 16
	// publishPatience is how long a publisher repeats a request.
	publishPatience = 3 * time.Minute
	// maxKillsFactor limits the kills to a multiple of deliveryKills. Without a limit, processes could be
	// killed so often on a busy machine that the site stays full: the kills would wait for the
	// publishers, and these for deliveries.
	maxKillsFactor = 2
	// longSleep is how long a process that delivers is paused: longer than its lease of 15 s, so that
	// another one takes over, and both have the same deliveries.
	longSleep = 18 * time.Second
	// publishPause is between two events of a publisher while there are kills to come.
	publishPause = 200 * time.Millisecond
)

const webhooksManifest = `
apiVersion: paddock.health/v1alpha1
kind: WebhookEvent
metadata: {name: created, namespace: %[1]s}
spec: {eventType: user.created, enabled: true}
---
apiVersion: paddock.health/v1alpha1
kind: WebhookEvent
metadata: {name: updated, namespace: %[1]s}
spec: {eventType: user.updated, enabled: true}
---
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: created-in-order, namespace: %[1]s}
spec: {eventType: user.created, url: %[2]q, caBundle: %[3]s, active: true, ordering: PerSubject}
---
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: created, namespace: %[1]s}
spec: {eventType: user.created, url: %[4]q, caBundle: %[5]s, active: true}
---
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: updated, namespace: %[1]s}
spec: {eventType: user.updated, url: %[4]q, caBundle: %[5]s, active: true}
`

// drill makes events at a site while processes are killed.
type drill struct {
	site              string
	inOrder, others   *localreceiver.Receiver
	mu                sync.Mutex
	posted            []string // ids of events
	created, updated  []string // ids of Practitioners
	retries, requests atomic.Int64
}

func startDrill(ctx context.Context, site string) *drill {
	GinkgoHelper()
	d := &drill{site: site, inOrder: localreceiver.Start(), others: localreceiver.Start()}
	DeferCleanup(d.inOrder.Close)
	DeferCleanup(d.others.Close)
	file := filepath.Join(GinkgoT().TempDir(), "webhooks.yaml")
	manifest := fmt.Sprintf(webhooksManifest, site, d.inOrder.URL, d.inOrder.CABundle(), d.others.URL, d.others.CABundle())
	Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
	_, err := paddock.Kubectl(ctx, "apply", "--server-side", "--filename", file)
	Expect(err).NotTo(HaveOccurred())
	_, err = paddock.Kubectl(ctx, "wait", "--for=condition=Active", "--timeout=60s", "--namespace", site, "webhook/created-in-order", "webhook/created", "webhook/updated")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		_, err := paddock.Kubectl(ctx, "delete", "--filename", file)
		Expect(err).NotTo(HaveOccurred())
	})
	for n := range 2 {
		d.awaitTargets(ctx, n)
	}
	return d
}

// awaitTargets waits until an API server sends events to the webhooks. It sees new Webhooks a moment after the
// controller, and "updated" last.
func (d *drill) awaitTargets(ctx context.Context, server int) {
	GinkgoHelper()
	subject := fmt.Sprint("probe/", server)
	Eventually(ctx, func() ([]localreceiver.Delivery, error) {
		body := fmt.Sprintf(`{"eventId":%q,"type":"user.updated","subject":%q,"data":{}}`, uuid.NewString(), subject)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, paddock.URLs[server]+"/site/"+d.site+"/ahds/v1/event", strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+bearers[d.site])
		request.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, err
		}
		answer.Body.Close()
		return d.others.About(subject), nil
	}).ShouldNot(BeEmpty(), "events of %s", paddock.URLs[server])
}

// publish makes at least count events, and goes on until kills ends: half of the publishers send
// them, the others write Practitioners. Each request is repeated until it is acknowledged.
func (d *drill) publish(ctx, kills context.Context, publisher, count int) error {
	for n := 0; n < count || kills.Err() == nil; n++ {
		idle(kills, publishPause)
		if publisher%2 == 0 {
			id := uuid.NewString()
			body := fmt.Sprintf(`{"eventId":%q,"type":"user.created","subject":"publisher/%d","data":{"n":%d}}`, id, publisher, n)
			if err := d.send(ctx, http.MethodPost, "/ahds/v1/event", body); err != nil {
				return err
			}
			d.mu.Lock()
			d.posted = append(d.posted, id)
			d.mu.Unlock()
			continue
		}
		id := fmt.Sprintf("p%d-%d-%s", publisher, n, uuid.NewString()[:8])
		for _, active := range []bool{false, true} {
			body := fmt.Sprintf(`{"resourceType":"Practitioner","id":%q,"active":%t}`, id, active)
			if err := d.send(ctx, http.MethodPut, "/fhir/practitioner/"+id, body); err != nil {
				return err
			}
			d.mu.Lock()
			if active {
				d.updated = append(d.updated, id)
			} else {
				d.created = append(d.created, id)
			}
			d.mu.Unlock()
		}
	}
	return nil
}

// send repeats a request at one API server and the other until it is acknowledged.
func (d *drill) send(ctx context.Context, method, path, body string) error {
	ctx, cancel := context.WithTimeout(ctx, publishPatience)
	defer cancel()
	said := ""
	for attempt := 0; ctx.Err() == nil; attempt++ {
		d.requests.Add(1)
		request, err := http.NewRequestWithContext(ctx, method, paddock.URLs[attempt%2]+"/site/"+d.site+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+bearers[d.site])
		request.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode < 300 {
				return nil
			}
			said = fmt.Sprintf("%d %s", answer.StatusCode, bytes.TrimSpace(text))
			if answer.StatusCode < 500 && answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusConflict {
				return fmt.Errorf("%s %s: %s", method, path, said)
			}
		} else {
			said = err.Error()
		}
		d.retries.Add(1)
		idle(ctx, 100*time.Millisecond)
	}
	return fmt.Errorf("%s %s was not acknowledged: %s", method, path, said)
}

// missing returns what was accepted and has not reached every webhook, at most a few.
func (d *drill) missing() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var missing []string
	for name, receiver := range map[string]*localreceiver.Receiver{"created-in-order": d.inOrder, "created": d.others} {
		ids, subjects := received(receiver, "user.created")
		for _, id := range d.posted {
			if !ids[id] {
				missing = append(missing, name+": event "+id)
			}
		}
		for _, id := range d.created {
			if !subjects["Practitioner/"+id] {
				missing = append(missing, name+": Practitioner "+id)
			}
		}
	}
	_, subjects := received(d.others, "user.updated")
	for _, id := range d.updated {
		if !subjects["Practitioner/"+id] {
			missing = append(missing, "updated: Practitioner "+id)
		}
	}
	return missing[:min(len(missing), 10)]
}

// received returns the ids and the subjects of the events of a type that came.
func received(by *localreceiver.Receiver, eventType string) (ids, subjects map[string]bool) {
	ids, subjects = map[string]bool{}, map[string]bool{}
	for _, each := range by.Where(func(d localreceiver.Delivery) bool { return d.Event["type"] == eventType }) {
		ids[each.Header.Get("webhook-id")] = true
		subject, _ := each.Event["subject"].(string)
		subjects[subject] = true
	}
	return ids, subjects
}

// disorder returns the events that first came to the ordered webhook after a later one of their
// subject.
func (d *drill) disorder() []string {
	last, seen := map[any]float64{}, map[string]bool{}
	var wrong []string
	for _, each := range d.inOrder.Where(func(localreceiver.Delivery) bool { return true }) {
		id := each.Header.Get("webhook-id")
		if seen[id] {
			continue
		}
		seen[id] = true
		sequence := each.Event["sequence"].(float64)
		if sequence <= last[each.Event["subject"]] {
			wrong = append(wrong, fmt.Sprintf("%v %v", each.Event["subject"], each.Event["sequence"]))
		}
		last[each.Event["subject"]] = sequence
	}
	return wrong
}

// duplicates counts the deliveries of what had come before, for all webhooks.
func (d *drill) duplicates() int {
	count := 0
	for _, receiver := range []*localreceiver.Receiver{d.inOrder, d.others} {
		seen := map[string]bool{}
		for _, each := range receiver.Where(func(localreceiver.Delivery) bool { return true }) {
			key := each.Header.Get("webhook-id")
			if seen[key] {
				count++
			}
			seen[key] = true
		}
	}
	return count
}

// pending returns how many deliveries of the site's webhooks are not done, by the log.
func (d *drill) pending(ctx context.Context) (string, error) {
	list, err := d.get(ctx, "/ahds/v1/webhook?pageSize=100")
	if err != nil {
		return "", err
	}
	total := 0.0
	for _, hook := range list["data"].([]any) {
		log, err := d.get(ctx, "/ahds/v1/webhook/"+hook.(map[string]any)["webhookId"].(string)+"/delivery?status=pending,failed,undelivered")
		if err != nil {
			return "", err
		}
		total += log["meta"].(map[string]any)["total"].(float64)
	}
	return fmt.Sprintf("%v of %d webhooks", total, len(list["data"].([]any))), nil
}

func (d *drill) get(ctx context.Context, path string) (map[string]any, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, paddock.URLs[0]+"/site/"+d.site+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+bearers[d.site])
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", path, answer.Status)
	}
	var content map[string]any
	return content, json.NewDecoder(answer.Body).Decode(&content)
}

// run publishes while victims are killed in turn, until all is published, but at least
// deliveryKills times and at most maxKillsFactor as often. At first, a process that delivers sleeps.
// Then run waits until everything has arrived.
func (d *drill) run(ctx SpecContext, victims []*victim, sleeper *victim, random *rand.Rand) {
	GinkgoHelper()
	awake := make(chan struct{})
	var publishing, killing errgroup.Group
	kills, enough := context.WithCancel(ctx)
	defer enough()
	for publisher := range publishers {
		publishing.Go(func() error { return d.publish(ctx, kills, publisher, *eventCount/publishers) })
	}
	killing.Go(func() error {
		defer close(awake)
		return sleeper.pause(ctx, longSleep)
	})
	var turn []int // the victims left of a random permutation, so that a few kills are of different ones
	next := func() *victim {
		for {
			if len(turn) == 0 {
				turn = random.Perm(len(victims))
			}
			v := victims[turn[0]]
			turn = turn[1:]
			if v != sleeper || isClosed(awake) {
				return v
			}
		}
	}
	published := make(chan struct{})
	killing.Go(func() error {
		defer enough()
		for n := 0; ; n++ {
			if n == *deliveryKills {
				enough()
			}
			idle(ctx, between(random, 500*time.Millisecond, 2500*time.Millisecond))
			select {
			case <-published:
				if n >= *deliveryKills {
					return nil
				}
			default:
				if n >= maxKillsFactor**deliveryKills {
					return nil
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := next().crash(ctx); err != nil {
				return err
			}
		}
	})
	err := publishing.Wait()
	close(published)
	Expect(err).NotTo(HaveOccurred())
	Expect(killing.Wait()).To(Succeed())
	began := time.Now()
	Eventually(ctx, d.missing).WithTimeout(*drainPatience).WithPolling(time.Second).Should(BeEmpty(), "accepted and not delivered")
	Eventually(ctx, d.pending).WithTimeout(*drainPatience).Should(HavePrefix("0 of 3"))
	Expect(d.disorder()).To(BeEmpty(), "events that came after a later one of their subject")
	counts := []string{}
	for _, v := range victims {
		counts = append(counts, fmt.Sprintf("%s %d", v.name, v.kills))
	}
	AddReportEntry("deliveries", fmt.Sprintf("%d events sent and %d+%d changes of records, %d requests repeated, %d duplicates; killed: %s; drained %s after the last kill",
		len(d.posted), len(d.created), len(d.updated), d.retries.Load(), d.duplicates(), strings.Join(counts, ", "), time.Since(began).Round(time.Second)))
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

var _ = Describe("deliveries while processes are killed", Label("deliveries"), func() {
	processes := func() []*victim {
		return []*victim{
			{name: "apiserver", process: paddock.APIServers[0]},
			{name: "apiserver-2", process: paddock.APIServers[1]},
			{name: "delivery", process: paddock.Deliveries[0]},
			{name: "delivery-2", process: paddock.Deliveries[1]},
		}
	}

	It("reach every webhook, from the cluster", Label("cluster"), func(ctx SpecContext) {
		d := startDrill(ctx, siteID)
		supervised, unsupervise := context.WithCancel(ctx)
		DeferCleanup(unsupervise)
		var supervision errgroup.Group
		controller := &victim{name: "controller", process: paddock.Controllers[0]}
		supervision.Go(func() error { return superviseController(supervised, controller, paddock.Controllers[0]) })
		victims := processes()
		d.run(ctx, append(victims,
			&victim{name: "kube-apiserver", process: control.APIServer()}, &victim{name: "etcd", process: control.Etcd()}), victims[3], newRandom("deliveries", 0))
		unsupervise()
		Expect(supervision.Wait()).To(Succeed())
	}, SpecTimeout(60*time.Minute))

	fromPostgres := func(ctx SpecContext, victims ...*victim) {
		GinkgoHelper()
		d := startDrill(ctx, postgresSiteID)
		d.run(ctx, append(victims, &victim{name: "postgres", process: database}), processes()[3], newRandom("deliveries", 1))
	}

	// Deliveries that a killed process had begun wait for 75 s, so the short form does not kill these processes.
	It("reach every webhook, from Postgres, when it and the API servers are killed", Label("postgres"), func(ctx SpecContext) {
		fromPostgres(ctx, processes()[:2]...)
	}, SpecTimeout(10*time.Minute))

	It("reach every webhook, from Postgres", Label("postgres", "long"), func(ctx SpecContext) {
		fromPostgres(ctx, processes()...)
	}, SpecTimeout(60*time.Minute))
})
