package robustness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/hack/robustness/history"
)

// underLoad says at which write a server dies while it has others under way.
const underLoad = 25

// interactions are the kinds of writes that the API has: what is done before, the
// write itself, and the steps it takes. For purges and claims, which the API does
// not have, there are the writers on the engine.
var interactions = []struct {
	name   string
	before []history.Kind
	kind   history.Kind
	steps  []string
}{
	{"create", nil, history.Put, []string{cluster.StepRecord}},
	{"update", []history.Kind{history.Put}, history.Put, []string{cluster.StepHistory, cluster.StepRecord}},
	{"delete", []history.Kind{history.Put}, history.Delete, []string{cluster.StepHistory, cluster.StepRecord}},
	{"create-again", []history.Kind{history.Put, history.Delete}, history.Put, []string{cluster.StepHistory, cluster.StepRecord}},
}

var _ = Describe("an API server that dies after a step of a write", Label("failpoints"), func() {
	It("leaves something from which others go on", func(ctx SpecContext) {
		log := newRecorder()
		healthy := &scribe{name: "healthy", client: newClient(practitioners, paddock.URLs[0]), log: log}
		var victims []*victim
		for _, step := range []string{cluster.StepHistory, cluster.StepRecord} {
			v, dying := startDying(ctx, step, 1, log)
			victims = append(victims, v)
			for _, write := range interactions {
				By(write.name + " on a server that dies after step " + step)
				id := step + "-" + write.name
				for _, kind := range write.before {
					Expect(healthy.write(ctx, kind, id)).To(Equal(history.Acknowledged))
				}
				exited := v.process.Exited()
				outcome := dying.write(ctx, write.kind, id)
				if !slices.Contains(write.steps, step) {
					Expect(outcome).To(Equal(history.Acknowledged))
					continue
				}
				Expect(outcome).To(Equal(history.Unknown))
				Eventually(ctx, exited).Should(BeClosed())
				v.kills++
				for _, kind := range []history.Kind{history.Put, history.Delete, history.Put} {
					Expect(healthy.write(ctx, kind, id)).To(Equal(history.Acknowledged))
				}
				Expect(v.revive(ctx)).To(Succeed())
			}
			Expect(v.process.Kill()).To(Succeed())
		}
		report.add("after each step of each write", log, victims)
		verify(ctx, practitioners, log)
	}, SpecTimeout(10*time.Minute))

	It("loses nothing of what others write at the same time", func(ctx SpecContext) {
		log := newRecorder()
		var victims []*victim
		for _, step := range []string{cluster.StepHistory, cluster.StepRecord} {
			v, dying := startDying(ctx, step, underLoad, log)
			victims = append(victims, v)
			stop := startWriters(persons, append(slices.Clone(paddock.URLs[:2]), dying.client.server), newHerd(step), log)
			DeferCleanup(stop)
			for range *failpointDeaths {
				Eventually(ctx, v.process.Exited()).Should(BeClosed())
				v.kills++
				Expect(v.revive(ctx)).To(Succeed())
			}
			stop()
			if v.process.Running() {
				Expect(v.process.Kill()).To(Succeed())
			}
		}
		report.add("after steps of writes under load", log, victims)
		verify(ctx, persons, log)
	}, SpecTimeout(20*time.Minute))
})

// startDying starts an API server that dies after the nth time that a write takes a step.
func startDying(ctx context.Context, step string, nth int, log *recorder) (*victim, *scribe) {
	GinkgoHelper()
	err := paddock.AddAPIServer(ctx, *apiServer+"-failpoints", "PADDOCK_FAILPOINT="+step, "PADDOCK_FAILPOINT_COUNT="+strconv.Itoa(nth))
	Expect(err).NotTo(HaveOccurred())
	last := len(paddock.APIServers) - 1
	name := fmt.Sprintf("dying-%s-%d", step, nth)
	return &victim{name: name, process: paddock.APIServers[last]},
		&scribe{name: name, client: newClient(practitioners, paddock.URLs[last]), log: log}
}

// scribe writes what it is told to.
type scribe struct {
	name   string
	client *client
	log    *recorder
	count  int
}

func (s *scribe) write(ctx context.Context, kind history.Kind, id string) history.Outcome {
	s.count++
	op := history.Operation{Kind: kind, Record: id}
	if kind == history.Put {
		op.Token = fmt.Sprintf("%s-%06d", s.name, s.count)
	}
	got := s.client.apply(ctx, &op)
	s.log.record(op, s.client.server, got.said())
	return op.Outcome
}
