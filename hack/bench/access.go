package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/paddock-health/paddock/hack/dev/localissuer"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// accessRecords is the number of Patients in each site of benchAccess. One in hiddenShare has a label
// by which the privacy rules hide the Patient from nurses.
const accessRecords, hiddenShare = 400, 40

// accessManifest is a Site and its callers: the ServiceAccount vet, from which nothing is hidden, and
// the ServiceAccount nurse and the issuer's user nurse, which see what the privacy rules allow.
const accessManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: vet, namespace: %[1]s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: nurse, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editors, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects:
- {kind: ServiceAccount, name: vet, namespace: %[1]s}
- {kind: ServiceAccount, name: nurse, namespace: %[1]s}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "site:%[1]s:nurse"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: privileged, namespace: %[1]s}
rules: [{apiGroups: [r4.fhir.paddock.health], resources: ["*"], verbs: [privileged]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: privileged, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: privileged}
subjects: [{kind: ServiceAccount, name: vet, namespace: %[1]s}]
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: %[1]s, namespace: %[1]s}
spec:
  storage: %[2]s
  limits: {requestsPerSecond: 1000000, callerRequestsPerSecond: 1000000, burst: 1000000, concurrentSearches: 10000}
%[3]s`

// accessRules are two privacy rules that both restrict nurses, and an issuer with the URL %[1]s, the
// CA %[2]s and the audience %[3]s.
const accessRules = `  privacy:
    rules:
    - {name: very-restricted, match: {security: [{system: "http://terminology.hl7.org/CodeSystem/v3-Confidentiality", code: V}]}, allow: {groups: [chiefs]}}
    - {name: staff, match: {tag: [{system: "urn:tags", code: staff}]}, allow: {groups: [owners]}}
  access:
    issuers:
    - name: clinic
      url: %[1]s
      caBundle: %[2]s
      audiences: [%[3]s]
      claimMappings: {username: {claim: sub}, groups: {claim: groups}, site: {claim: site}}
      authorization: RBAC
`

// accessKind is a configuration of tokens, rules and audit. Its cost is compared with that of a
// ServiceAccount's token alone.
type accessKind struct {
	name string
	// user is vet or nurse. issued says that the issuer signs the token; otherwise the token is that
	// of a ServiceAccount.
	user   string
	issued bool
	// ruled selects the site with two privacy rules and an issuer, audited the API server that records
	// requests.
	ruled, audited bool
}

// The API servers of benchAccess: one that records requests, and three of the build that does not. The
// baseline has an API server of its own, so that its processor time is known while another kind is
// measured. fillServer only writes the records. The three servers that are measured then all get the
// records from a watch, and have equal indexes in memory.
const (
	auditedServer = iota
	baselineServer
	unauditedServer
	fillServer
)

func (k accessKind) server() int {
	switch {
	case k.audited:
		return auditedServer
	case k == accessKinds[0]:
		return baselineServer
	default:
		return unauditedServer
	}
}

// accessKinds begin with the baseline. The second kind is the same on another API server: the distance
// of its ratio from 1 is the error of the measurement. Only kinds with both rules and audit have a
// goal.
var accessKinds = []accessKind{
	{name: "a ServiceAccount's token alone", user: "vet"},
	{name: "nothing more", user: "vet"},
	{name: "two rules", user: "nurse", ruled: true},
	{name: "audit", user: "vet", audited: true},
	{name: "two rules and audit", user: "nurse", ruled: true, audited: true},
	{name: "two rules and audit, an issuer's token", user: "nurse", issued: true, ruled: true, audited: true},
}

// accessRequest is a kind of request. goal is the maximum ratio of its processor time to that of the
// baseline.
type accessRequest struct {
	name, path string
	goal       float64
}

var accessRequests = []accessRequest{
	{"read by id", "/patient/p-%d", 1.15},
	{"family prefix, page of 20", "/patient?_total=none&_count=20&family=okaf", 1.20},
}

// benchAccess compares the processor time of reads and searches with privacy rules, issuers and the
// audit log with that of a baseline: the same requests with a ServiceAccount's token alone. The
// baseline uses a site without rules and issuers, and a caller from which nothing is hidden. Its API
// server is a build that records nothing (tag unaudited), because no Site can turn off its audit log.
// RBAC authorizes all requests. Each kind has its turns at the same time as the baseline, each with an
// API server of its own, so that other load of the machine slows both.
func benchAccess(ctx context.Context, o options, in installation) error {
	dir, err := os.MkdirTemp("", "paddock-bench-access")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	issuer, err := localissuer.Start(ctx, filepath.Join(o.bin, "issuer"), dir)
	if err != nil {
		return err
	}
	defer func() { _ = issuer.Stop() }()
	server, err := localpostgres.Start(ctx, localpostgres.Options{Dir: filepath.Join(dir, "postgres"), Settings: benchSettings})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	uri, err := server.CreateDatabase(ctx, "demo", "demo")
	if err != nil {
		return err
	}
	for range fillServer {
		if err := in.paddock.AddAPIServer(ctx, "apiserver-unaudited"); err != nil {
			return fmt.Errorf("%w (`make build-unaudited` builds the program apiserver-unaudited)", err)
		}
	}
	for _, engine := range []struct{ name, storage string }{
		{"cluster", "{type: Cluster, cluster: {maxRecords: 10000, maxSize: 1Gi}}"},
		{"postgres", "{type: Postgres, postgres: {external: {secretRef: {name: demo-db}}}}"},
	} {
		a := &accessBench{in: in, issuer: issuer, engine: engine.name, storage: engine.storage, uri: uri}
		if err := a.run(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// accessBench measures the sites of one engine.
type accessBench struct {
	in                   installation
	issuer               *localissuer.Issuer
	engine, storage, uri string
}

func (a *accessBench) namespace(ruled bool) string {
	if ruled {
		return a.engine + "-ruled"
	}
	return a.engine + "-plain"
}

// run measures every request with every kind, and prints a table.
func (a *accessBench) run(ctx context.Context, o options) error {
	requests := slices.DeleteFunc(slices.Clone(accessRequests), func(r accessRequest) bool {
		return !strings.Contains(a.engine+": "+r.name, o.only)
	})
	if len(requests) == 0 {
		return nil
	}
	for _, ruled := range []bool{false, true} {
		if err := a.open(ctx, ruled); err != nil {
			return err
		}
		if err := a.fill(ctx, ruled); err != nil {
			return err
		}
	}
	fmt.Printf("%s: %d clients each for a kind and for the baseline, %d turns of %s each\n\n", a.engine, o.clients, o.rounds, o.turn)
	fmt.Print("| request | with | CPU of the API server per request | CPU of the baseline per request | ratio: median (range over the turns) | goal |\n|---|---|---|---|---|---|\n")
	for _, request := range requests {
		costs, err := a.measure(ctx, o, request)
		if err != nil {
			return err
		}
		for i, kind := range accessKinds[1:] {
			goal := 0.0
			if kind.ruled && kind.audited {
				goal = request.goal
			}
			tellAccess(os.Stdout, request.name+" | "+kind.name, costs[i], goal)
		}
	}
	fmt.Println()
	return nil
}

// accessCost is the processor time of a request, and that of the baseline in the same turn.
type accessCost struct{ own, baseline time.Duration }

func (c accessCost) ratio() float64 { return float64(c.own) / float64(c.baseline) }

// measure returns the costs of the turns. Element i has those of accessKinds[i+1].
func (a *accessBench) measure(ctx context.Context, o options, request accessRequest) ([][]accessCost, error) {
	workloads := make([]workload, len(accessKinds))
	for i, kind := range accessKinds {
		site, err := a.site(ctx, kind)
		if err != nil {
			return nil, err
		}
		workloads[i] = workload{request.name, func(ctx context.Context, n int) error {
			path := request.path
			if strings.Contains(path, "%d") {
				path = fmt.Sprintf(path, 1+n%(hiddenShare-1)) // p-1 to p-39: p-0 and p-40 are hidden
			}
			return site.do(ctx, http.MethodGet, path, nil, http.StatusOK)
		}}
	}
	costs := make([][]accessCost, len(accessKinds)-1)
	for round := range o.rounds + 1 {
		for i := range costs {
			fmt.Fprintf(os.Stderr, "\rround %d of %d: %-60s", round, o.rounds, accessKinds[i+1].name)
			cost, err := a.turn(ctx, o, workloads, i+1)
			if err != nil {
				return nil, fmt.Errorf("%s with %s: %w", request.name, accessKinds[i+1].name, err)
			}
			if round > 0 { // the first round warms caches and connections
				costs[i] = append(costs[i], cost)
			}
		}
	}
	fmt.Fprintln(os.Stderr)
	return costs, nil
}

// turn measures one kind and the baseline at the same time, with nearly the same number of requests.
func (a *accessBench) turn(ctx context.Context, o options, workloads []workload, kind int) (accessCost, error) {
	var group errgroup.Group
	took := make([]time.Duration, 2)
	together := newLockstep(o.clients)
	for i, number := range []int{kind, 0} {
		paced := workload{workloads[number].name, func(ctx context.Context, n int) error {
			together.await(i)
			return workloads[number].run(ctx, n)
		}}
		pid := a.in.paddock.APIServers[accessKinds[number].server()].Pid()
		group.Go(func() error {
			next := map[string]int{}
			before, err := preciselySpent(pid)
			if err != nil {
				return err
			}
			defer together.end()
			if _, _, err := takeTurn(ctx, o, paced, next); err != nil {
				return err
			}
			after, err := preciselySpent(pid)
			took[i] = (after - before) / time.Duration(next[paced.name])
			return err
		})
	}
	return accessCost{own: took[0], baseline: took[1]}, group.Wait()
}

// lockstep keeps two sides at the same rate: a side that is lead requests ahead waits for the other
// side. A server that gets fewer requests has smaller batches and wakes up more often per request. At
// different rates, the slower side would therefore spend more processor time on the same work.
type lockstep struct {
	mu    sync.Mutex
	moved *sync.Cond
	made  [2]int
	lead  int
	ended bool
}

func newLockstep(lead int) *lockstep {
	l := &lockstep{lead: lead}
	l.moved = sync.NewCond(&l.mu)
	return l
}

// await returns when a side may make its next request.
func (l *lockstep) await(side int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.ended && l.made[side]-l.made[1-side] >= l.lead {
		l.moved.Wait()
	}
	l.made[side]++
	l.moved.Broadcast()
}

// end lets a side go on alone, because the other one has ended its turn.
func (l *lockstep) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.moved.Broadcast()
}

// preciselySpent returns the processor time of a process. It reads nanoseconds, because /proc/pid/stat
// counts hundredths of a second, which are several percent of a turn. Threads that have ended are not
// counted; the Go runtime keeps its threads.
func preciselySpent(pid int) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err == nil && len(threads) == 0 {
		err = fmt.Errorf("/proc/%d/task has no threads, so the process has ended", pid)
	}
	var all time.Duration
	for _, thread := range threads {
		content, err := os.ReadFile(thread)
		if err != nil {
			return 0, err
		}
		first, _, _ := strings.Cut(string(content), " ")
		ran, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", thread, err)
		}
		all += time.Duration(ran)
	}
	return all, err
}

// open makes a site and waits until it is Ready.
func (a *accessBench) open(ctx context.Context, ruled bool) error {
	namespace, rules := a.namespace(ruled), ""
	if ruled {
		rules = fmt.Sprintf(accessRules, a.issuer.URL, base64.StdEncoding.EncodeToString([]byte(a.issuer.CA)), namespace)
	}
	path := a.in.cluster.File(namespace + ".yaml")
	manifest := fmt.Sprintf(accessManifest, namespace, a.storage, rules)
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		return err
	}
	if _, err := a.in.paddock.Kubectl(ctx, "apply", "--filename", path); err != nil {
		return err
	}
	if err := a.in.paddock.SetSecret(ctx, namespace, "demo-db", "paddock.health/dsn", map[string]string{"uri": a.uri}); err != nil {
		return err
	}
	_, err := a.in.paddock.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "-n", namespace, "site/"+namespace)
	return err
}

// fill writes the records into the site with rules, or into the one without, and waits until each kind
// that uses this site can read p-1.
func (a *accessBench) fill(ctx context.Context, ruled bool) error {
	site, err := a.siteAt(ctx, accessKind{user: "vet", ruled: ruled}, fillServer)
	if err != nil {
		return err
	}
	for n := range accessRecords {
		label := `"meta":{"security":[{"system":"http://terminology.hl7.org/CodeSystem/v3-Confidentiality","code":"N"}]},`
		if n%hiddenShare == 0 {
			label = strings.Replace(label, `"N"`, `"V"`, 1)
		}
		text := strings.Replace(string(body(n)), `"resourceType":"Patient",`, fmt.Sprintf(`"resourceType":"Patient","id":"p-%d",%s`, n, label), 1)
		if err := site.do(ctx, http.MethodPut, fmt.Sprintf("/patient/p-%d", n), []byte(text), http.StatusCreated); err != nil {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, sitesPoll, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, kind := range accessKinds {
			if kind.ruled != ruled {
				continue
			}
			if site, err := a.site(ctx, kind); err != nil || site.do(ctx, http.MethodGet, "/patient/p-1", nil, http.StatusOK) != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// site returns a client of the site, with the API server and the token of a kind.
func (a *accessBench) site(ctx context.Context, kind accessKind) (*site, error) {
	return a.siteAt(ctx, kind, kind.server())
}

func (a *accessBench) siteAt(ctx context.Context, kind accessKind, server int) (*site, error) {
	namespace := a.namespace(kind.ruled)
	var token string
	var err error
	if kind.issued {
		claims := localissuer.With(a.issuer.Claims(namespace, namespace), "sub", kind.user)
		token, err = a.issuer.SignClaims(ctx, claims)
	} else {
		token, err = a.in.paddock.Token(ctx, namespace, kind.user, "paddock.health/"+namespace+"/"+namespace, 2*time.Hour)
	}
	return newSite(a.in.paddock.URLs[server]+"/site/"+namespace+"/fhir", token), err
}

// tellAccess prints the processor time of one kind, and its ratio to the baseline of the same turns.
func tellAccess(out io.Writer, name string, costs []accessCost, goal float64) {
	slices.SortFunc(costs, func(a, b accessCost) int { return cmp.Compare(a.ratio(), b.ratio()) })
	middle, last := costs[len(costs)/2], len(costs)-1
	wanted := ""
	if goal > 0 {
		wanted = fmt.Sprintf("%.2f", goal)
	}
	fmt.Fprintf(out, "| %s | %d µs | %d µs | %.2f (%.2f–%.2f) | %s |\n", name, middle.own.Microseconds(), middle.baseline.Microseconds(),
		middle.ratio(), costs[0].ratio(), costs[last].ratio(), wanted)
}
