//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	writers = 4
	// recordsPerWriter bounds what is kept: a site in the cluster's own storage has a limit.
	recordsPerWriter = 20
	// writePause keeps a machine of two cores from being busy with load alone.
	writePause = 50 * time.Millisecond
)

const noAnswer = "no answer"

// boundedFailures are what clients may see while a process is gone. The ingress says 502 of a
// connection that it cannot make, 500 of one that ends before the answer.
var boundedFailures = []string{
	noAnswer, "503 of Paddock",
	"500 of the ingress", "502 of the ingress", "503 of the ingress", "504 of the ingress",
}

// load writes some records over and over, a number in each that grows, and remembers which
// numbers were acknowledged.
type load struct {
	client *client
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu sync.Mutex
	// attempted and acknowledged are the last numbers by record.
	attempted, acknowledged map[string]int
	writes                  int
	// failures counts lost connections and answers that are no success, by what they are.
	failures map[string]int
	longest  time.Duration
	// lastAcknowledged is when the last write was, outage the longest time without any.
	lastAcknowledged time.Time
	outage           time.Duration
}

// startLoad writes until stop.
func startLoad(ctx context.Context, c *client, name string) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{client: c, cancel: cancel, attempted: map[string]int{}, acknowledged: map[string]int{}, failures: map[string]int{}}
	for writer := range writers {
		l.done.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				// A request that is cut short by stop would be a failure of the load itself.
				l.write(context.WithoutCancel(ctx), fmt.Sprintf("%s-%d-%d", name, writer, i%recordsPerWriter), i)
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

// write writes a number to a record. No two calls at a time are for the same record.
func (l *load) write(ctx context.Context, id string, number int) {
	began := time.Now()
	status, answer, err := l.client.put(ctx, id, strconv.Itoa(number))
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempted[id] = number
	l.longest = max(l.longest, took)
	switch {
	case err != nil:
		l.failures[noAnswer]++
	case status == http.StatusCreated, status == http.StatusOK:
		l.acknowledged[id] = number
		l.writes++
		now := time.Now()
		if !l.lastAcknowledged.IsZero() {
			l.outage = max(l.outage, now.Sub(l.lastAcknowledged))
		}
		l.lastAcknowledged = now
	case bytes.Contains(answer, []byte("OperationOutcome")):
		l.failures[fmt.Sprintf("%d of Paddock", status)]++
	default:
		l.failures[fmt.Sprintf("%d of the ingress", status)]++
	}
}

func (l *load) stop() {
	l.cancel()
	l.done.Wait()
}

// count tells how many writes were acknowledged so far.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes
}

// awaitMore returns when some more writes were acknowledged.
func (l *load) awaitMore(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, l.count).Should(BeNumerically(">", l.count()+10*writers))
}

// verify stops the load, says what it came to, and reads every acknowledged record.
func (l *load) verify(ctx context.Context) {
	GinkgoHelper()
	l.stop()
	AddReportEntry("load", fmt.Sprintf("%d writes acknowledged, failures %v, longest request %s, longest time without a write %s",
		l.writes, l.failures, l.longest.Round(time.Millisecond), l.outage.Round(time.Millisecond)), ReportEntryVisibilityAlways)
	for failure := range l.failures {
		Expect(failure).To(BeElementOf(boundedFailures))
	}
	l.expectAll(ctx)
}

// expectAll reads every record: it has the last number that was acknowledged, or one that was
// written later, without an answer.
func (l *load) expectAll(ctx context.Context) {
	GinkgoHelper()
	for id, acknowledged := range l.acknowledged {
		family, err := l.client.family(ctx, id)
		Expect(err).NotTo(HaveOccurred(), "an acknowledged record is lost")
		number, err := strconv.Atoi(family)
		Expect(err).NotTo(HaveOccurred())
		Expect(number).To(And(BeNumerically(">=", acknowledged), BeNumerically("<=", l.attempted[id])), "an acknowledged write is lost")
	}
}
