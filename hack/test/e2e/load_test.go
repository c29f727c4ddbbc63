//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
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

// load writes some records over and over, a number in each that grows, and books slots. It remembers
// which numbers and bookings were acknowledged.
type load struct {
	client *client
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu sync.Mutex
	// attempted and acknowledged are the last numbers by record.
	attempted, acknowledged map[string]int
	// booked are the last slots that were booked, by id.
	booked []string
	writes int
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
	l.done.Go(func() {
		resource := uuid.NewString()
		for i := 0; ctx.Err() == nil; i++ {
			l.book(context.WithoutCancel(ctx), resource, i)
			select {
			case <-ctx.Done():
			case <-time.After(writePause):
			}
		}
	})
	DeferCleanup(l.stop)
	return l
}

// book books a slot, tries to book it twice, and gives the oldest booking up.
func (l *load) book(ctx context.Context, resource string, n int) {
	ahds := l.client.ahds()
	start := time.Date(2031, 3, 1, 9, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Hour)
	body := fmt.Sprintf(`{"startAt":%q,"endAt":%q,"locationId":%q,"resourceId":%q,"isBooked":true}`,
		start.Format(time.RFC3339), start.Add(time.Hour).Format(time.RFC3339), resource, resource)
	send := func(method, path, body string, want int) (answer []byte, found bool) {
		status, answer, err := ahds.send(ctx, method, path, body)
		l.mu.Lock()
		defer l.mu.Unlock()
		if err == nil && status == want {
			return answer, true
		}
		l.failures[failure(status, answer, err)]++
		return nil, false
	}
	answer, found := send(http.MethodPost, "availability-slot", body, http.StatusCreated)
	if !found {
		return
	}
	var slot struct{ AvailabilitySlotID string }
	if err := json.Unmarshal(answer, &slot); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failures[err.Error()]++
		return
	}
	l.booked = append(l.booked, slot.AvailabilitySlotID)
	send(http.MethodPost, "availability-slot", body, http.StatusConflict)
	if len(l.booked) > recordsPerWriter {
		send(http.MethodDelete, "availability-slot/"+l.booked[0], "", http.StatusNoContent)
		l.booked = l.booked[1:]
	}
}

// failure describes a response that is no success, or the lack of one. One that is not among
// boundedFailures has its body.
func failure(status int, answer []byte, err error) string {
	if err != nil {
		return noAnswer
	}
	sender := "the ingress"
	if bytes.Contains(answer, []byte("OperationOutcome")) || bytes.Contains(answer, []byte(`"code":`)) {
		sender = "Paddock"
	}
	described := fmt.Sprintf("%d of %s", status, sender)
	if !slices.Contains(boundedFailures, described) {
		described += ": " + string(answer)
	}
	return described
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
	if err != nil || status != http.StatusCreated && status != http.StatusOK {
		l.failures[failure(status, answer, err)]++
		return
	}
	l.acknowledged[id] = number
	l.writes++
	now := time.Now()
	if !l.lastAcknowledged.IsZero() {
		l.outage = max(l.outage, now.Sub(l.lastAcknowledged))
	}
	l.lastAcknowledged = now
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

// verify stops the load, says what it came to, and reads every acknowledged record. It is no
// GinkgoHelper, so that the summary of a failure has the line of the check.
func (l *load) verify(ctx context.Context) {
	l.stop()
	AddReportEntry("load", fmt.Sprintf("%d writes acknowledged, failures %v, longest request %s, longest time without a write %s",
		l.writes, l.failures, l.longest.Round(time.Millisecond), l.outage.Round(time.Millisecond)), ReportEntryVisibilityAlways)
	for failure := range l.failures {
		Expect(failure).To(BeElementOf(boundedFailures))
	}
	l.expectAll(ctx)
}

// expectAll reads every record: it has the last number that was acknowledged, or one that was
// written later, without an answer. The bookings of the last slots are there.
func (l *load) expectAll(ctx context.Context) {
	for id, acknowledged := range l.acknowledged {
		family, err := l.client.family(ctx, id)
		Expect(err).NotTo(HaveOccurred(), "an acknowledged record is lost")
		number, err := strconv.Atoi(family)
		Expect(err).NotTo(HaveOccurred())
		Expect(number).To(And(BeNumerically(">=", acknowledged), BeNumerically("<=", l.attempted[id])), "an acknowledged write is lost")
	}
	for _, id := range l.booked {
		status, answer, err := l.client.ahds().send(ctx, http.MethodGet, "availability-slot/"+id, "")
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusOK), "a booking is lost")
		Expect(string(answer)).To(ContainSubstring(`"isBooked":true`))
	}
}
