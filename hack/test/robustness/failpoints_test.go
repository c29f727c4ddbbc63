package robustness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

// underLoad says at which write a server dies while it has others under way.
const underLoad = 25

// move is one write of the API.
type move int

const (
	put move = iota
	remove
	// createUnlessFound is a create under criteria, which it claims.
	createUnlessFound
)

// interactions are the kinds of writes that the API has: what is done before, the
// write itself, the steps it takes, and what is done afterwards by others. For
// purges, which the API does not have, there are the writers on the engine.
var interactions = []struct {
	name          string
	before, after []move
	write         move
	steps         []string
}{
	{"create", nil, []move{put, remove, put}, put, []string{cluster.StepRecord}},
	{"update", []move{put}, []move{put, remove, put}, put, []string{cluster.StepHistory, cluster.StepRecord}},
	{"delete", []move{put}, []move{put, remove, put}, remove, []string{cluster.StepHistory, cluster.StepRecord}},
	{"create-again", []move{put, remove}, []move{put, remove, put}, put, []string{cluster.StepHistory, cluster.StepRecord}},
	{"create-unless-found", nil, []move{createUnlessFound}, createUnlessFound, []string{cluster.StepPlaceholder, cluster.StepClaims, cluster.StepRecord}},
	{"delete-with-claim", []move{createUnlessFound}, []move{put, remove, put}, remove, []string{cluster.StepHistory, cluster.StepRecord, cluster.StepReleased}},
}

// claimPatience is longer than a dead writer keeps its claims.
const claimPatience = 90 * time.Second

var _ = Describe("an API server that dies after a step of a write", Label("failpoints"), Ordered, func() {
	var log *recorder
	var victims []*victim
	var others sync.WaitGroup

	AfterAll(others.Wait)

	// What others do next may have to wait for the end of a dead writer's claim. Meanwhile the next spec runs.
	It("answers nothing, whatever the write and the step are", func(ctx SpecContext) {
		log = newRecorder()
		healthy := newClient(relatedPersons, paddock.URLs[0])
		waiting := context.WithoutCancel(ctx)
		for _, step := range []string{cluster.StepPlaceholder, cluster.StepClaims, cluster.StepHistory, cluster.StepRecord, cluster.StepReleased} {
			v, program, dying := startDying(ctx, relatedPersons, step, 1)
			victims = append(victims, v)
			for _, do := range interactions {
				if !slices.Contains(do.steps, step) {
					continue
				}
				By(do.name + " on a server that dies after step " + step)
				s := &scribe{log: log, name: step + "-" + do.name}
				s.id = s.name
				for _, m := range do.before {
					Expect(s.write(ctx, healthy, m)).To(Equal(history.Acknowledged))
				}
				exited := program.Exited()
				Expect(s.write(ctx, dying, do.write)).To(Equal(history.Unknown))
				Eventually(ctx, exited).Should(BeClosed())
				v.kills++
				others.Go(func() {
					defer GinkgoRecover()
					for _, m := range do.after {
						Eventually(waiting, s.write).WithArguments(waiting, healthy, m).WithTimeout(claimPatience).Should(Equal(history.Acknowledged))
					}
				})
				Expect(v.revive(ctx)).To(Succeed())
			}
			Expect(program.Kill()).To(Succeed())
		}
	}, SpecTimeout(10*time.Minute))

	It("loses nothing of what others write at the same time", func(ctx SpecContext) {
		log := newRecorder()
		var victims []*victim
		for _, step := range []string{cluster.StepHistory, cluster.StepRecord} {
			v, program, dying := startDying(ctx, persons, step, underLoad)
			victims = append(victims, v)
			stop := startWriters(persons, append(slices.Clone(paddock.URLs[:2]), dying.server), newHerd(step), log)
			DeferCleanup(stop)
			for range *failpointDeaths {
				Eventually(ctx, program.Exited()).Should(BeClosed())
				v.kills++
				Expect(v.revive(ctx)).To(Succeed())
			}
			stop()
			if program.Running() {
				Expect(program.Kill()).To(Succeed())
			}
		}
		report.add("after steps of writes under load", log, victims)
		verify(ctx, persons, log)
	}, SpecTimeout(20*time.Minute))

	It("leaves something from which others go on", func(ctx SpecContext) {
		others.Wait()
		report.add("after each step of each write", log, victims)
		verify(ctx, relatedPersons, log)
	}, SpecTimeout(2*time.Minute))
})

// startDying starts an API server that dies the nth time that a write gets behind
// a step.
func startDying(ctx context.Context, k kind, step string, nth int) (*victim, *localcluster.Process, *client) {
	GinkgoHelper()
	err := paddock.AddAPIServer(ctx, *apiServer+"-failpoints", "PADDOCK_FAILPOINT="+step, "PADDOCK_FAILPOINT_COUNT="+strconv.Itoa(nth))
	Expect(err).NotTo(HaveOccurred())
	last := len(paddock.APIServers) - 1
	v := &victim{name: fmt.Sprintf("dying after %s", step), process: paddock.APIServers[last]}
	return v, paddock.APIServers[last], newClient(k, paddock.URLs[last])
}

// scribe writes one record, as it is told to. Its name are its criteria.
type scribe struct {
	log   *recorder
	name  string
	id    string
	count int
}

func (s *scribe) write(ctx context.Context, via *client, m move) history.Outcome {
	s.count++
	op := history.Operation{Kind: history.Put, Record: s.id, Token: fmt.Sprintf("%s-%06d", s.name, s.count)}
	switch m {
	case put:
	case remove:
		op.Kind, op.Token = history.Delete, ""
	case createUnlessFound:
		op.Record, op.Criteria = "", s.name
	}
	got := via.apply(ctx, &op)
	s.log.recordAnswer(op, via, got)
	if seen, ok := via.found(op, got); ok {
		op = seen
	}
	if m == createUnlessFound && op.Outcome == history.Acknowledged {
		s.id = op.Record
	}
	return op.Outcome
}
