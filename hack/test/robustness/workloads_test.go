package robustness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
)

// purgers lets the editor of a site purge records.
const purgers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor-admin, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-admin}
subjects: [{kind: ServiceAccount, name: editor, namespace: %[1]s}]
`

const (
	// The sites of the workloads. The load has sites of its own, in which it expects no other records.
	workloadSite           = "workloads"
	workloadSiteInPostgres = "workloads-postgres"
	// workloadRounds is how many requests of each workload must be answered before a fault and after it.
	workloadRounds = 2
	// workloadPause is between two requests of one workload.
	workloadPause = 30 * time.Millisecond
)

// workload is a use of a site, such as booking slots. Each has records of its own.
type workload interface {
	// round does some work until its outcome is known, or ctx ends. It reports whether it is known.
	round(ctx context.Context) bool
	// verify checks what is stored, when no request is open and nothing is broken.
	verify(ctx context.Context)
}

// caller sends the requests of one workload to one API server after the other.
type caller struct {
	site, prefix string
	// postgres reports whether the site is in Postgres.
	postgres bool
	first    int

	mu       sync.Mutex
	rounds   int
	failures []string
	// broken has the requests whose connection broke after they were sent, with the error.
	broken []string
}

// withdrawn reports for each API server whether it gets no requests of workloads, as Kubernetes sends
// none to a Pod that ends. A listener that is closed resets connections which it has not accepted.
var withdrawn [2]atomic.Bool

// answered is a response. Its status is 0 if there was none.
type answered struct {
	status int
	header http.Header
	body   string
}

// unknown reports whether the request may have had an effect, or had none: it must be repeated.
func (a answered) unknown() bool { return a.status == 0 || a.status == http.StatusServiceUnavailable }

// send sends a request to an API server. All that a caller may see in a fault is a broken connection
// and 503 with Retry-After; everything else than the wanted statuses is a failure of the test.
func (v *caller) send(ctx context.Context, attempt int, method, path, body string, header map[string]string, wanted ...int) answered {
	server := (v.first + attempt) % 2
	if withdrawn[server].Load() {
		server = 1 - server
	}
	if withdrawn[server].Load() {
		return answered{}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clientPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, paddock.URLs[server]+"/site/"+v.site+path, strings.NewReader(body))
	if err != nil {
		v.fail("%v", err)
		return answered{}
	}
	// A server that ends closes idle connections, on which a request may be on its way. No server can
	// prevent that, so each request has its own connection, and a broken one is the server's fault.
	request.Close = true
	request.Header.Set("Authorization", "Bearer "+bearers[v.site])
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	var text []byte
	if err == nil {
		text, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	if err != nil {
		var failed *net.OpError
		if !errors.As(err, &failed) || failed.Op != "dial" {
			v.mu.Lock()
			v.broken = append(v.broken, fmt.Sprintf("%s: %s %s: %v", time.Now().Format(time.StampMilli), method, request.URL, err))
			v.mu.Unlock()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			v.fail("%s %s was not answered within %s", method, path, clientPatience)
		}
		return answered{}
	}
	got := answered{response.StatusCode, response.Header, string(text)}
	if got.status == http.StatusServiceUnavailable {
		if got.header.Get("Retry-After") == "" {
			v.fail("%s %s: 503 without Retry-After: %s", method, path, text)
		}
		return got
	}
	for _, status := range wanted {
		if got.status == status {
			return got
		}
	}
	v.fail("%s %s: %d %s", method, path, got.status, text)
	return got
}

// repeat sends a request until its outcome is known. Between two attempts it calls between.
func (v *caller) repeat(ctx context.Context, between func(), method, path, body string, header map[string]string, wanted ...int) (got answered, attempts int) {
	for ctx.Err() == nil {
		got = v.send(ctx, attempts, method, path, body, header, wanted...)
		attempts++
		if !got.unknown() {
			return got, attempts
		}
		if between != nil {
			between()
		}
		idle(ctx, 50*time.Millisecond)
	}
	return answered{}, attempts
}

// get sends a GET request when nothing is broken.
func (v *caller) get(ctx context.Context, path string) answered {
	GinkgoHelper()
	var got answered
	Eventually(ctx, func() bool {
		got = v.send(ctx, 0, http.MethodGet, path, "", nil, http.StatusOK, http.StatusNotFound, http.StatusGone)
		return !got.unknown()
	}).Should(BeTrue(), "GET %s", path)
	return got
}

func (v *caller) fail(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failures = append(v.failures, v.site+" "+v.prefix+": "+fmt.Sprintf(format, args...))
}

// entries are the resources of a searchset.
func (v *caller) entries(a answered) []map[string]any {
	var bundle struct {
		Entry []struct{ Resource map[string]any }
	}
	if err := json.Unmarshal([]byte(a.body), &bundle); err != nil {
		v.fail("%v in %s", err, a.body)
	}
	var all []map[string]any
	for _, entry := range bundle.Entry {
		all = append(all, entry.Resource)
	}
	return all
}

// versionID is the versionId of a resource.
func versionID(resource map[string]any) string {
	meta, _ := resource["meta"].(map[string]any)
	return fmt.Sprint(meta["versionId"])
}

// workloads is the work at all sites during one fault.
type workloads struct {
	all    map[workload]*caller
	cancel context.CancelFunc
	group  sync.WaitGroup
}

// workloadSites are the sites with workloads.
var workloadSites = []string{workloadSite, workloadSiteInPostgres}

// startWorkloads starts every kind of work at the sites, through both API servers. In the cluster, an
// unfinished booking of a killed API server blocks others for 30 s, so bookings there are optional.
func startWorkloads(name string, clusterBookings bool, sites ...string) *workloads {
	ctx, cancel := context.WithCancel(context.Background())
	d := &workloads{all: map[workload]*caller{}, cancel: cancel}
	DeferCleanup(func() {
		cancel()
		d.group.Wait()
	})
	for _, site := range sites {
		for server := range 2 {
			callerOf := func(kind string) *caller {
				return &caller{site: site, postgres: site == workloadSiteInPostgres, first: server, prefix: fmt.Sprintf("%s-%s-%d", kind, name, server)}
			}
			for kind, open := range map[string]func(*caller) workload{
				"booking": func(v *caller) workload { return &clerk{caller: v, kept: map[string]string{}} },
				"purge":   func(v *caller) workload { return &purger{caller: v} },
				"import":  func(v *caller) workload { return &importer{caller: v} },
				"export":  func(v *caller) workload { return &exporter{caller: v} },
				"bundle":  func(v *caller) workload { return &bundler{caller: v} },
				"kubectl": func(v *caller) workload { return &applier{caller: v} },
			} {
				v := callerOf(kind)
				if kind == "bundle" && !v.postgres || kind == "kubectl" && server > 0 {
					continue // transactions need Postgres; one kubectl at a time is load enough
				}
				if kind == "booking" && !v.postgres && !clusterBookings {
					continue
				}
				d.all[open(v)] = v
			}
		}
	}
	for each, v := range d.all {
		d.group.Go(func() {
			defer GinkgoRecover()
			for ctx.Err() == nil {
				if each.round(ctx) {
					v.mu.Lock()
					v.rounds++
					v.mu.Unlock()
				}
				idle(ctx, workloadPause)
			}
		})
	}
	return d
}

// progress waits until every workload has had answers from now on.
func (d *workloads) progress(ctx context.Context, when string) {
	GinkgoHelper()
	before := map[*caller]int{}
	behind := func() (waiting []string) {
		for _, v := range d.all {
			v.mu.Lock()
			if _, there := before[v]; !there {
				before[v] = v.rounds
			}
			if v.rounds < before[v]+workloadRounds {
				waiting = append(waiting, v.site+" "+v.prefix)
			}
			v.mu.Unlock()
		}
		return waiting
	}
	Eventually(ctx, behind).WithTimeout(2*time.Minute).Should(BeEmpty(), "workloads without an answer %s", when)
}

// answered is the number of rounds whose outcome is known.
func (d *workloads) answered() (n int) {
	for _, v := range d.all {
		v.mu.Lock()
		n += v.rounds
		v.mu.Unlock()
	}
	return n
}

// broken returns the requests whose connection broke after they were sent.
func (d *workloads) broken() (all []string) {
	for _, v := range d.all {
		v.mu.Lock()
		all = append(all, v.broken...)
		v.mu.Unlock()
	}
	return all
}

// close ends the work and verifies what is stored.
func (d *workloads) close(ctx context.Context) {
	GinkgoHelper()
	d.cancel()
	d.group.Wait()
	for each, v := range d.all {
		each.verify(ctx)
		Expect(v.failures).To(BeEmpty())
	}
}

var _ = Describe("bookings, transactions, purges, imports, exports and kubectl", Label("workloads"), Ordered, ContinueOnFailure, func() {
	BeforeAll(func(ctx SpecContext) {
		for _, site := range workloadSites {
			serveWorkloadSite(ctx, site)
		}
	})

	revive := func(ctx context.Context, all ...breakable) {
		GinkgoHelper()
		for _, process := range all {
			Expect((&victim{name: "process", process: process}).revive(ctx)).To(Succeed())
		}
	}
	kill := func(ctx context.Context, all ...breakable) {
		GinkgoHelper()
		for _, process := range all {
			Expect(process.Kill()).To(Succeed())
		}
		idle(ctx, 500*time.Millisecond)
		revive(ctx, all...)
		idle(ctx, time.Second) // under load
	}
	pause := func(ctx context.Context, process breakable) {
		GinkgoHelper()
		Expect(process.Pause()).To(Succeed())
		idle(ctx, 2*time.Second)
		Expect(process.Resume()).To(Succeed())
		idle(ctx, time.Second) // under load
	}

	It("keep what they acknowledge, whole and once, when API servers and Postgres are killed, paused and cut off", func(ctx SpecContext) {
		d := startWorkloads("a", false, workloadSites...)
		d.progress(ctx, "before the faults")
		kill(ctx, paddock.APIServers[0], paddock.APIServers[1])
		kill(ctx, database)
		for range 5 {
			Expect(cutPostgres(ctx)).To(Succeed())
			idle(ctx, 200*time.Millisecond)
		}
		pause(ctx, paddock.APIServers[0])
		pause(ctx, database)
		d.progress(ctx, "after the faults")
		d.close(ctx)
	}, SpecTimeout(5*time.Minute))

	It("keep what they acknowledge, whole and once, when kube-apiserver and etcd are killed and paused", Label("long"), func(ctx SpecContext) {
		supervised, unsupervise := context.WithCancel(ctx)
		DeferCleanup(unsupervise)
		var supervision errgroup.Group
		controller := &victim{name: "controller", process: paddock.Controllers[0]}
		supervision.Go(func() error { return superviseController(supervised, controller, paddock.Controllers[0]) })
		d := startWorkloads("c", true, workloadSites...)
		d.progress(ctx, "before the faults")
		expectServedWithout(ctx, control.APIServer())
		kill(ctx, control.Etcd())
		pause(ctx, control.APIServer())
		d.progress(ctx, "after the faults")
		d.close(ctx)
		unsupervise()
		Expect(supervision.Wait()).To(Succeed())
	}, SpecTimeout(5*time.Minute))

	It("break no open request when the API servers are rolled out", Label("long"), func(ctx SpecContext) {
		d := startWorkloads("r", true, workloadSites...)
		d.progress(ctx, "before the roll-out")
		DeferCleanup(func() {
			for n := range withdrawn {
				withdrawn[n].Store(false)
			}
		})
		for n, server := range paddock.APIServers[:2] {
			withdrawn[n].Store(true)
			idle(ctx, time.Second)                    // as the preStop hook of the chart waits
			Expect(server.Restart(ctx)).To(Succeed()) // by SIGTERM
			withdrawn[n].Store(false)
		}
		Expect(d.broken()).To(BeEmpty(), "connections that broke after a request was sent")
		d.progress(ctx, "after the roll-out")
		d.close(ctx)
	}, SpecTimeout(5*time.Minute))

	It("refuse writes when etcd has no room, and take them when it has, without a restart", func(ctx SpecContext) {
		v, other := &caller{site: workloadSite, prefix: "quota"}, &caller{site: workloadSiteInPostgres, prefix: "quota"}
		put := func(v *caller, n int) answered {
			return v.send(ctx, n, http.MethodPut, "/fhir/patient/quota", fmt.Sprintf(`{"resourceType":"Patient","id":"quota","multipleBirthInteger":%d}`, n), nil, http.StatusOK, http.StatusCreated)
		}
		Expect(put(v, 0).unknown()).To(BeFalse())
		Expect(control.SetFull(ctx, true)).To(Succeed())
		DeferCleanup(control.SetFull, false)
		for n := range 4 {
			got := put(v, 1+n)
			Expect(got.status).To(Equal(http.StatusServiceUnavailable), got.body)
			Expect(got.body).To(ContainSubstring(`unavailable"`))
			Expect(put(other, n).unknown()).To(BeFalse(), "a site in Postgres")
		}
		Expect(control.SetFull(ctx, false)).To(Succeed())
		for server := range 2 {
			Eventually(ctx, func() string {
				return v.send(ctx, server, http.MethodGet, "/fhir/patient/quota", "", nil, http.StatusOK).body
			}).Should(ContainSubstring(`"multipleBirthInteger":0`))
		}
		Eventually(ctx, func() bool { return put(v, 9).unknown() }).Should(BeFalse())
		Expect(append(v.failures, other.failures...)).To(BeEmpty())
	}, SpecTimeout(3*time.Minute))
})

// serveWorkloadSite serves one of workloadSites, with what workloads need.
func serveWorkloadSite(ctx context.Context, site string) {
	GinkgoHelper()
	if site == workloadSiteInPostgres {
		serveSiteInPostgres(ctx, site)
	} else {
		serveSite(ctx, site, "site.yaml")
	}
	file := filepath.Join(GinkgoT().TempDir(), "purgers.yaml")
	Expect(os.WriteFile(file, fmt.Appendf(nil, purgers, site), 0o600)).To(Succeed())
	_, err := paddock.Kubectl(ctx, "apply", "--server-side", "--filename", file)
	Expect(err).NotTo(HaveOccurred())
	for server := range 2 {
		v := &caller{site: site, first: server}
		Eventually(ctx, func() int {
			return v.send(ctx, 0, http.MethodPost, "/fhir/patient/absent/$purge", "", nil, http.StatusNotFound, http.StatusForbidden).status
		}).Should(Equal(http.StatusNotFound))
		fillForExport(ctx, v)
	}
}

// expectServedWithout kills kube-apiserver, and expects that the site in Postgres is served to those
// whose token and rights are known, and that nothing is said to others.
func expectServedWithout(ctx context.Context, apiServer breakable) {
	GinkgoHelper()
	known := &caller{site: workloadSiteInPostgres}
	fresh, err := paddock.Token(ctx, workloadSiteInPostgres, account, "paddock.health/"+workloadSiteInPostgres+"/"+workloadSiteInPostgres, time.Hour)
	Expect(err).NotTo(HaveOccurred())
	served := func(attempt int) int {
		return known.send(ctx, attempt, http.MethodGet, "/fhir/location/export-1", "", nil, http.StatusOK).status
	}
	for server := range 2 {
		Expect(served(server)).To(Equal(http.StatusOK))
	}
	Expect(apiServer.Kill()).To(Succeed())
	defer func() { Expect((&victim{name: "kube-apiserver", process: apiServer}).revive(ctx)).To(Succeed()) }()
	for server := range 2 {
		Expect(served(server)).To(Equal(http.StatusOK), "a token and a right that are known")
		for _, site := range []string{workloadSite, workloadSiteInPostgres, "absent"} {
			stranger := &caller{site: site}
			got := stranger.send(ctx, server, http.MethodGet, "/fhir/location/export-1", "", map[string]string{"Authorization": "Bearer " + fresh})
			Expect(stranger.failures).To(BeEmpty())
			Expect(got.status).To(Equal(http.StatusServiceUnavailable), "a token that is not known, at the site %s", site)
			Expect(got.body).To(ContainSubstring(`unavailable"`))
		}
	}
	Expect(known.failures).To(BeEmpty())
	idle(ctx, time.Second)
}

// cutPostgres ends all sessions in the database of workloads.
func cutPostgres(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, database.URL(workloadSiteInPostgres))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }() // its only statement has ended
	_, err = conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()", workloadSiteInPostgres)
	return err
}
