package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const (
	// greedyLimit is requestsPerSecond of the greedy caller's site. The greedy caller sends
	// greedyTimes as many requests. Both are small, so that a busy machine can send them.
	greedyLimit, greedyTimes = 100, 5
	// greedyBurst is small, so that few requests of a turn are allowed in addition to greedyLimit per
	// second.
	greedyBurst = 10
	// greedyGC is GOGC of the control plane. With Go's default, kube-apiserver collects garbage during
	// about one in a hundred reads, so that p99 would depend on the number of collections in a turn.
	greedyGC = "400"
	// modestRate is how many requests per second the modest caller sends, which is the caller of the
	// Site demo.
	modestRate = 100
)

const greedyManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: greedy}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: editor, namespace: greedy}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor, namespace: greedy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: paddock-editor}
subjects: [{kind: ServiceAccount, name: editor, namespace: greedy}]
---
apiVersion: paddock.health/v1alpha1
kind: Site
metadata: {name: greedy, namespace: greedy}
spec: {limits: {requestsPerSecond: %[1]d, callerRequestsPerSecond: %[1]d, burst: %[2]d}}
`

// withGreedy starts what benchGreedy measures, and runs it. It sets GOGC in the environment of this
// process.
func withGreedy(ctx context.Context, o options) error {
	if err := os.Setenv("GOGC", greedyGC); err != nil {
		return err
	}
	return withPaddock(ctx, o, benchGreedy)
}

// benchGreedy measures the reads of a modest caller of one site in three kinds of turns, which
// alternate: alone; while the caller of another site sends as many requests as that site allows; and
// while it sends greedyTimes as many. On a machine without idle processors, allowed requests also slow
// the reads. The ratio of the third kind to the second therefore shows what the limit achieves.
func benchGreedy(ctx context.Context, o options, in installation) error {
	greedy, err := openGreedySite(ctx, in)
	if err != nil {
		return err
	}
	for n := range 100 {
		if err := in.site.create(ctx, n); err != nil {
			return err
		}
		if err := greedy.create(ctx, n); err != nil {
			return err
		}
	}
	crowd := &crowd{site: greedy, clients: o.clients}
	var rounds [][3]greedyTurn // the three turns of a round: alone, within the limit, beyond it
	for n := range o.rounds + 1 {
		var round [3]greedyTurn
		for i, times := range []int{0, 1, greedyTimes} {
			stop := crowd.start(ctx, times*greedyLimit)
			turn, err := modestTurn(ctx, in.site, o.turn)
			stop()
			if err != nil {
				return err
			}
			slices.Sort(turn)
			round[i] = greedyTurn{len(turn), percentile(turn, 50), percentile(turn, 99)}
		}
		if n > 0 { // the first round warms caches and connections
			rounds = append(rounds, round)
		}
	}
	share := float64(crowd.refused.Load()) / float64(crowd.asked.Load())
	tellGreedy(os.Stdout, rounds, share)
	if share < 0.5 {
		return fmt.Errorf("only %.0f %% of the greedy caller's requests were refused, want at least 50 %%, so the ratios say nothing; repeat the set on an idle machine", 100*share)
	}
	return nil
}

// crowd is the clients of a caller that sends more requests than its site allows.
type crowd struct {
	site    *site
	clients int
	// asked counts the requests of turns beyond the limit, and refused those of them that got a 429.
	asked, refused atomic.Int64
}

// start sends perSecond requests per second, none if it is 0, until stop is called.
func (c *crowd) start(ctx context.Context, perSecond int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	pace := rate.NewLimiter(rate.Limit(perSecond), 1)
	for range c.clients {
		if perSecond == 0 {
			break
		}
		group.Go(func() {
			for n := 0; pace.Wait(ctx) == nil; n++ {
				err := c.site.do(ctx, http.MethodGet, "/patient/"+c.site.id(n), nil, http.StatusTooManyRequests)
				if perSecond <= greedyLimit || ctx.Err() != nil {
					continue
				}
				if c.asked.Add(1); err == nil {
					c.refused.Add(1)
				}
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
	}
}

func openGreedySite(ctx context.Context, in installation) (*site, error) {
	path := in.cluster.File("greedy.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, greedyManifest, greedyLimit, greedyBurst), 0o600); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"apply", "--filename", path},
		{"wait", "--for=condition=Ready", "--timeout=30s", "-n", "greedy", "site/greedy"},
	} {
		if _, err := in.paddock.Kubectl(ctx, args...); err != nil {
			return nil, err
		}
	}
	token, err := in.paddock.Token(ctx, "greedy", "editor", "paddock.health/greedy/greedy", 2*time.Hour)
	if err != nil {
		return nil, err
	}
	return newSite(in.paddock.URLs[0]+"/site/greedy/fhir", token), nil
}

// modestTurn reads at a steady pace for a while, and returns how long each read took.
func modestTurn(ctx context.Context, s *site, length time.Duration) ([]time.Duration, error) {
	took, _, err := pacedTurn(ctx, modestRate, length, s.read)
	return took, err
}

// pacedTurn sends requests at a steady pace for a while. It returns how long each took, how many failed
// and the first failure. n rises by one with each request.
func pacedTurn(ctx context.Context, perSecond int, length time.Duration, send func(ctx context.Context, n int) error) (took []time.Duration, failed int, first error) {
	pace := rate.NewLimiter(rate.Limit(perSecond), 1)
	var mu sync.Mutex
	var group sync.WaitGroup
	var next atomic.Int64
	turn, stop := context.WithTimeout(ctx, length)
	defer stop()
	for range 8 {
		group.Go(func() {
			for pace.Wait(turn) == nil {
				sent := time.Now()
				err := send(ctx, int(next.Add(1)))
				spent := time.Since(sent)
				mu.Lock()
				took = append(took, spent)
				if err != nil {
					failed, first = failed+1, cmp.Or(first, err)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return took, failed, first
}

// greedyTurn is the result of one turn of the modest caller.
type greedyTurn struct {
	reads    int
	p50, p99 time.Duration
}

// tellGreedy prints medians and quartiles over the rounds. refused is the part, from 0 to 1, of the
// greedy caller's requests that got a 429 in the turns beyond its limit. Each ratio compares two
// turns of the same round, because the other load of the machine changes from round to round.
func tellGreedy(out io.Writer, rounds [][3]greedyTurn, refused float64) {
	fmt.Fprintf(out, "%d reads/s of one site, next to a caller of another site that sends %d times its limit of %d requests/s; %.0f %% of that caller's requests were refused; %d rounds\n\n", modestRate, greedyTimes, greedyLimit, 100*refused, len(rounds))
	fmt.Fprint(out, "| reads of the one site | number | p50 | p99 | p99 relative to alone | p99 relative to within the limit | goal of the last ratio |\n|---|---|---|---|---|---|---|\n")
	for i, name := range []string{"alone", "next to the caller within its limit", "next to the caller beyond its limit"} {
		var reads int
		var p50, p99, perAlone, perWithin []float64
		for _, round := range rounds {
			reads += round[i].reads
			p50 = append(p50, 1000*round[i].p50.Seconds())
			p99 = append(p99, 1000*round[i].p99.Seconds())
			perAlone = append(perAlone, float64(round[i].p99)/float64(round[0].p99))
			perWithin = append(perWithin, float64(round[i].p99)/float64(round[1].p99))
		}
		fmt.Fprintf(out, "| %s | %d | %s ms | %s ms | %s | %s | 1.5 |\n", name, reads,
			quartiles("%.1f", p50), quartiles("%.1f", p99), quartiles("%.2f", perAlone), quartiles("%.2f", perWithin))
	}
}

// quartiles sorts values in place. It returns the median, and the first and third quartile in
// parentheses.
func quartiles(format string, values []float64) string {
	slices.Sort(values)
	return fmt.Sprintf(format+" ("+format+"–"+format+")", values[len(values)/2], values[len(values)/4], values[len(values)*3/4])
}
