package robustness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

// writer does one random operation after another through all servers.
type writer struct {
	name    string
	random  *rand.Rand
	clients []*client
	herd    *herd
	log     *recorder
	count   int
}

// newRandom makes a source that depends on the run's seed and a name only.
func newRandom(name string, number int) *rand.Rand {
	mixed := uint64(number)
	for _, c := range name {
		mixed = mixed*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), mixed))
}

// startWriters lets writers work until the function it returns is called. That
// returns when the last operation has its answer.
func startWriters(k kind, servers []string, h *herd, log *recorder) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	for i := range *writerCount {
		w := &writer{name: fmt.Sprintf("%s-%02d", h.prefix, i), random: newRandom(h.prefix, i), herd: h, log: log}
		for _, server := range servers {
			w.clients = append(w.clients, newClient(k, server))
		}
		group.Go(func() error {
			for ctx.Err() == nil {
				w.step(ctx)
			}
			return nil
		})
	}
	return func() {
		cancel()
		_ = group.Wait() // they return no errors
	}
}

// step does one operation. It is not cut short when the writers are stopped.
func (w *writer) step(stopped context.Context) {
	op := w.choose()
	via := w.clients[w.random.IntN(len(w.clients))]
	if w.random.IntN(hangUpShare) == 0 {
		via = via.impatient(between(w.random, time.Millisecond, 60*time.Millisecond))
	}
	created := op.Record == ""
	got := via.apply(context.WithoutCancel(stopped), &op)
	w.log.recordAnswer(op, via, got)
	switch {
	case got.status == 0 || got.status >= http.StatusInternalServerError:
		idle(stopped, between(w.random, 50*time.Millisecond, 150*time.Millisecond))
	case created && op.Criteria == "" && w.random.IntN(4) == 0 && op.Outcome == history.Acknowledged:
		w.herd.adopt(op.Record, w.random)
	case op.Outcome == history.Acknowledged || op.Unmet:
		w.herd.saw(op.Record, got.version())
	}
}

// hangUpShare is how many operations there are to one whose client hangs up on it.
const hangUpShare = 30

// criteriaShare is for how many of its contents a writer stays with some criteria.
const criteriaShare = 30

func (w *writer) token() string {
	w.count++
	return fmt.Sprintf("%s-%06d", w.name, w.count)
}

// choose mixes the interactions of the API. The versions to match are the newest
// that any writer knows of, so that many of them race for the same one.
func (w *writer) choose() history.Operation {
	s := w.herd.pick(w.random)
	put := history.Operation{Kind: history.Put, Record: s.id}
	remove := history.Operation{Kind: history.Delete, Record: s.id}
	switch n := w.random.IntN(100); {
	case n < 15:
		return history.Operation{Kind: history.Read, Record: s.id}
	case n < 20:
		return remove
	case n < 25:
		remove.If.Version = s.version
		return remove
	case n < 32:
		put.Record = ""
	case n < 34:
		// The writers come to the same criteria at about the same time.
		put.Record, put.Criteria = "", fmt.Sprintf("%s-%d", w.herd.prefix, w.count/criteriaShare)
	case n < 42:
		put.If.Absent = true
	case n < 65:
		put.If.Version = s.version
	}
	put.Token = w.token()
	return put
}
