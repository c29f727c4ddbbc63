//go:build linux

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	writers = 4
	// writePause keeps a machine of two cores from being busy with load alone.
	writePause = 20 * time.Millisecond
)

// load writes new records, each once, and remembers which were acknowledged.
type load struct {
	client *client
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu           sync.Mutex
	acknowledged map[string]string
	// failures counts answers by status, and lost connections as status 0.
	failures map[int]int
	longest  time.Duration
}

// startLoad writes until stop.
func startLoad(ctx context.Context, c *client, name string) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{client: c, cancel: cancel, acknowledged: map[string]string{}, failures: map[int]int{}}
	for writer := range writers {
		l.done.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				// A request that is cut short by stop would be a failure of the load itself.
				l.write(context.WithoutCancel(ctx), fmt.Sprintf("%s-%d-%d", name, writer, i))
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

func (l *load) write(ctx context.Context, id string) {
	began := time.Now()
	status, err := l.client.put(ctx, id, "of "+id)
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, took)
	switch {
	case err != nil:
		l.failures[0]++
	case status == http.StatusCreated:
		l.acknowledged[id] = "of " + id
	default:
		l.failures[status]++
	}
}

func (l *load) stop() {
	l.cancel()
	l.done.Wait()
}

// writes counts what was acknowledged so far.
func (l *load) writes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acknowledged)
}

// awaitMore returns when some more writes were acknowledged.
func (l *load) awaitMore(ctx context.Context) {
	GinkgoHelper()
	before := l.writes()
	Eventually(ctx, l.writes).Should(BeNumerically(">", before+10*writers))
}

// verify stops the load, says what it came to, and reads every acknowledged record.
func (l *load) verify(ctx context.Context) {
	GinkgoHelper()
	l.stop()
	AddReportEntry("load", fmt.Sprintf("%d writes acknowledged, failures by status (0: no answer) %v, longest %s",
		len(l.acknowledged), l.failures, l.longest.Round(time.Millisecond)), ReportEntryVisibilityAlways)
	for status := range maps.Keys(l.failures) {
		// The ingress answers 502, 503 or 504 in place of an API server that is gone.
		Expect(status).To(BeElementOf(0, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout))
	}
	l.expectAll(ctx)
}

// expectAll reads every acknowledged record.
func (l *load) expectAll(ctx context.Context) {
	GinkgoHelper()
	for id, want := range l.acknowledged {
		got, err := l.client.family(ctx, id)
		Expect(err).NotTo(HaveOccurred(), "an acknowledged write is lost")
		Expect(got).To(Equal(want))
	}
}
