package move

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

// create creates a SiteMove of the Site demo to the database of a Secret.
func create(ctx context.Context, name, secret string) {
	GinkgoHelper()
	apply(ctx, fmt.Sprintf(`
apiVersion: paddock.health/v1alpha1
kind: SiteMove
metadata: {name: %s, namespace: demo}
spec: {siteName: demo, to: {type: Postgres, postgres: {external: {secretRef: {name: %s}}}}}`, name, secret))
}

func apply(ctx context.Context, manifest string) {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
	Expect(os.WriteFile(path, []byte(manifest), 0o600)).To(Succeed())
	kubectl(ctx, "apply", "--server-side", "--filename", path)
}

// awaitHook waits until a receiver gets the events of both API servers, which see a new Webhook a moment after the
// controller.
func awaitHook(ctx context.Context, r *localreceiver.Receiver) {
	GinkgoHelper()
	for _, base := range paddock.URLs {
		prefix, made := "probe-"+uuid.NewString()+"-", 0
		Eventually(func(g Gomega) {
			made++
			id := fmt.Sprint(prefix, made)
			got := send(ctx, "PUT", base+demo+"/fhir/practitioner/"+id, fmt.Sprintf(`{"resourceType":"Practitioner","id":%q}`, id))
			g.Expect(got.status).To(Equal(201), got.body)
			g.Expect(r.Where(about("Practitioner/" + prefix))).NotTo(BeEmpty())
		}).WithTimeout(patience).WithPolling(200 * time.Millisecond).Should(Succeed())
	}
}

// about matches deliveries of events whose subjects have a prefix.
func about(prefix string) func(localreceiver.Delivery) bool {
	return func(d localreceiver.Delivery) bool {
		subject, _ := d.Event["subject"].(string)
		return strings.HasPrefix(subject, prefix)
	}
}

func decide(ctx context.Context, name, decision string) {
	GinkgoHelper()
	kubectl(ctx, "patch", "sitemove", name, "-n", "demo", "--type=merge", "-p", `{"spec":{"decision":"`+decision+`"}}`)
}

func phase(ctx context.Context, name string) string {
	GinkgoHelper()
	return string(read(ctx, name).Status.Phase)
}

// await waits until a move has a phase, and fails if it was rolled back instead.
func await(ctx context.Context, name, wanted string) {
	GinkgoHelper()
	awaitFor(ctx, patience, name, wanted)
}

func awaitFor(ctx context.Context, limit time.Duration, name, wanted string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		now := phase(ctx, name)
		if now == "RolledBack" && wanted != now {
			StopTrying(describe(ctx, name)).Now()
		}
		g.Expect(now).To(Equal(wanted))
	}).WithTimeout(limit).WithPolling(50*time.Millisecond).Should(Succeed(), func() string { return describe(ctx, name) })
}

func describe(ctx context.Context, name string) string {
	output, _ := paddock.Kubectl(ctx, "get", "sitemove", name, "-n", "demo", "-o", "yaml")
	return string(output)
}

// expectNothing expects that a database has no rows of sites.
func expectNothing(ctx context.Context, database string) {
	GinkgoHelper()
	conn := connectTo(ctx, database)
	for _, table := range []string{"sites", "res", "hist", "audit", "delivery", "event", "outbox"} {
		var rows int
		Expect(conn.QueryRow(ctx, "SELECT count(*) FROM "+table).Scan(&rows)).To(Succeed())
		Expect(rows).To(BeZero(), "rows of the table %s", table)
	}
}

func pauseOf(ctx context.Context, name string) time.Duration {
	GinkgoHelper()
	times := strings.Fields(kubectl(ctx, "get", "sitemove", name, "-n", "demo", "-o", "jsonpath={.status.pausedTime} {.status.resumedTime}"))
	Expect(times).To(HaveLen(2), describe(ctx, name))
	from, err := time.Parse(time.RFC3339Nano, times[0])
	Expect(err).NotTo(HaveOccurred())
	until, err := time.Parse(time.RFC3339Nano, times[1])
	Expect(err).NotTo(HaveOccurred())
	return until.Sub(from)
}

func storage(ctx context.Context) string {
	GinkgoHelper()
	return kubectl(ctx, "get", "site", "demo", "-n", "demo", "-o", "jsonpath={.spec.storage.type} {.spec.storage.postgres.external.secretRef.name}")
}

// practitioners is the number of records whose events wait while the Site is moved.
const practitioners = 6

// hookOn turns the events on that the webhooks of the specs get.
const hookOn = `
apiVersion: paddock.health/v1alpha1
kind: WebhookEvent
metadata: {name: hook-on, namespace: demo}
spec: {eventType: user.created, enabled: true}
---`

const webhook = hookOn + `
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: hook, namespace: demo}
spec: {eventType: user.created, url: %q, active: true, caBundle: %s, ordering: PerSubject, timeoutSeconds: 1, retry: {delaysSeconds: [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10]}}`

// slowAnswer is how long a receiver takes to answer, so that attempts are in progress at any time.
const slowAnswer = 1500 * time.Millisecond

const slowHook = hookOn + `
apiVersion: paddock.health/v1alpha1
kind: Webhook
metadata: {name: slow, namespace: demo}
spec: {eventType: user.created, url: "%s/slow", active: true, caBundle: %s, timeoutSeconds: 10}
`

var _ = Describe("A Site", Ordered, func() {
	BeforeAll(func() {
		if *full {
			Skip("the long form runs")
		}
	})

	It("moves from the cluster to Postgres under load, with its pending deliveries", func(ctx SpecContext) {
		apply(ctx, fmt.Sprintf(webhook, receiver.URL+"/hook", receiver.CABundle()))
		kubectl(ctx, "wait", "--for=condition=Active", "--timeout=60s", "-n", "demo", "webhook/hook")
		awaitHook(ctx, receiver)
		all := about("Practitioner/p-")
		receiver.Answer(503)
		l := startLoad("a")
		for n := range practitioners {
			got := send(ctx, "PUT", fmt.Sprintf("%s/site/demo/fhir/practitioner/p-%d", paddock.URLs[n%2], n), fmt.Sprintf(`{"resourceType":"Practitioner","id":"p-%d"}`, n))
			Expect(got.status).To(Equal(201), got.body)
		}
		Eventually(func() int { return len(receiver.Where(all)) }).WithTimeout(patience).Should(BeNumerically(">", 0))
		create(ctx, "to-first", "first")
		await(ctx, "to-first", "Switched")
		Expect(storage(ctx)).To(Equal("Postgres first"))
		Expect(kubectl(ctx, "get", "sitemove", "to-first", "-n", "demo", "-o", "jsonpath={.status.copy.worker}")).NotTo(BeEmpty())
		receiver.Take()
		receiver.Answer(200)
		Eventually(func() int { return len(receiver.Where(all)) }).WithTimeout(patience).Should(Equal(practitioners))
		kubectl(ctx, "delete", "webhook", "hook", "-n", "demo")
		time.Sleep(time.Second)
		l.stop(ctx)
		AddReportEntry("pause of writes, Cluster to Postgres", pauseOf(ctx, "to-first"))
		Expect(pauseOf(ctx, "to-first")).To(BeNumerically("<", maxPause))
		Expect(receiver.Where(all)).To(HaveLen(practitioners), "deliveries after the switch, each made once")
	})

	It("refuses a change of its storage by hand", func(ctx SpecContext) {
		output, err := paddock.Kubectl(ctx, "patch", "site", "demo", "-n", "demo", "--type=merge", "-p", `{"spec":{"storage":{"type":"Cluster","postgres":null}}}`)
		Expect(err).To(MatchError(ContainSubstring("SiteMove")), string(output))
	})

	It("returns to the cluster with the writes since the switch", func(ctx SpecContext) {
		l := startLoad("b")
		time.Sleep(time.Second)
		decide(ctx, "to-first", "RollBack")
		await(ctx, "to-first", "RolledBack")
		Expect(storage(ctx)).To(Equal("Cluster "))
		time.Sleep(time.Second)
		l.stop(ctx)
	})

	It("moves although the controller and the API server that copies are killed in each phase, and returns", func(ctx SpecContext) {
		migrate(ctx, "first")
		l := startLoad("c")
		time.Sleep(500 * time.Millisecond)
		killIn(ctx, "killed", "first", forwardSteps("", "first"), controllerAndAPI, func() { create(ctx, "killed", "first") })
		await(ctx, "killed", "Switched")
		Expect(storage(ctx)).To(Equal("Postgres first"))
		rolling := backSteps("", "first")
		killIn(ctx, "killed", "first", rolling[len(rolling)-1:], controllerAndAPI, func() { decide(ctx, "killed", "RollBack") })
		await(ctx, "killed", "RolledBack")
		Expect(storage(ctx)).To(Equal("Cluster "))
		l.stop(ctx)
		expectNothing(ctx, "first")
	})

	It("loses no write of an API server that was paused during the switch, and of one during the return", func(ctx SpecContext) {
		// There are no readers, because a paused API server serves reads of the former storage until it has
		// seen the switch.
		l := startLoadOf("d", writers, 0)
		time.Sleep(500 * time.Millisecond)
		missSwitch(ctx, "missed", v1alpha1.MoveForward, func() { create(ctx, "missed", "first") }, v1alpha1.MoveSwitched)
		time.Sleep(2 * time.Second)
		missSwitch(ctx, "missed", v1alpha1.MoveBack, func() { decide(ctx, "missed", "RollBack") }, v1alpha1.MoveRollingBack)
		await(ctx, "missed", "RolledBack")
		time.Sleep(time.Second)
		l.stop(ctx)
	})

	It("sends each event once, though attempts are in progress when the move begins to pause", func(ctx SpecContext) {
		slow := localreceiver.Start()
		DeferCleanup(slow.Close)
		answer := slow.Config.Handler
		slow.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer.ServeHTTP(w, r)
			time.Sleep(slowAnswer) // the response is sent when the handler returns
		})
		apply(ctx, fmt.Sprintf(slowHook, slow.URL, slow.CABundle()))
		kubectl(ctx, "wait", "--for=condition=Active", "--timeout=60s", "-n", "demo", "webhook/slow")
		awaitHook(ctx, slow)
		create(ctx, "sends", "first")
		made := 0
		var until time.Time // the end, which is known after the switch
		for ; until.IsZero() || time.Now().Before(until); time.Sleep(slowAnswer / 10) {
			if until.IsZero() && phase(ctx, "sends") == "Switched" {
				until = time.Now().Add(time.Second)
			}
			id := fmt.Sprintf("once-%d", made)
			if got := send(ctx, "PUT", paddock.URLs[made%2]+demo+"/fhir/practitioner/"+id, fmt.Sprintf(`{"resourceType":"Practitioner","id":%q}`, id)); got.status == 201 {
				made++
			} else {
				Expect(got.status).To(Equal(503), got.body)
			}
		}
		all := about("Practitioner/once-")
		Eventually(func() int { return len(slow.Where(all)) }).WithTimeout(patience).Should(BeNumerically(">=", made))
		time.Sleep(2 * slowAnswer)
		times := map[any]int{}
		for _, d := range slow.Where(all) {
			times[d.Event["subject"]]++
		}
		Expect(times).To(HaveLen(made))
		Expect(times).To(HaveEach(1))
		kubectl(ctx, "delete", "webhook", "slow", "-n", "demo")
		decide(ctx, "sends", "RollBack")
		await(ctx, "sends", "RolledBack")
	})

	Describe("whose storage and programs fail", Ordered, faultSpecs)

	Describe("whose new database is full", Ordered, roomSpecs)

	Describe("that moves from the cluster to another namespace", Ordered, clusterNamespaceSpecs)

	Describe("with a calendar, a hold, keys, webhooks and an audit log", Ordered, carriedSpecs)

	Describe("by kubectl paddock move", Ordered, commandSpecs)

	Describe("in a pool of databases", Ordered, poolSpecs)

	Describe("that moves to another namespace", Ordered, namespaceSpecs) // last: the Site demo stays there
})
