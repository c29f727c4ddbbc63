package move

import (
	"context"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

// step is a phase of a move in which programs are killed.
type step struct {
	phase     v1alpha1.MovePhase
	direction v1alpha1.MoveDirection
	// hold makes the phase last until it is released. It is nil if the phase lasts for a second anyway.
	hold func(context.Context) *hold
	// copies reports whether an API server is known to copy during the hold.
	copies bool
	// partly makes the hold let one transaction pass first, so that a part of the records is copied.
	partly bool
}

// forwardSteps are all phases until the switch. The databases are empty if the storage is in the
// cluster.
func forwardSteps(from, to string) []step {
	holdTo := func(table string) func(context.Context) *hold {
		return func(ctx context.Context) *hold { return holdTable(ctx, to, table, "SHARE ROW EXCLUSIVE") }
	}
	steps := []step{
		{phase: v1alpha1.MovePending, hold: func(ctx context.Context) *hold { return holdTable(ctx, to, "sites", "ACCESS EXCLUSIVE") }},
		{phase: v1alpha1.MoveCopying, hold: holdTo("res"), copies: true},
		{phase: v1alpha1.MoveDraining},
		{phase: v1alpha1.MovePausing},
		{phase: v1alpha1.MoveCatchingUp, hold: holdTo("delivery"), copies: true},
		{phase: v1alpha1.MoveSwitching},
		{phase: v1alpha1.MoveSwitched, hold: holdTo("audit"), copies: true},
	}
	if from != "" {
		// The fence waits for open transactions.
		steps[3].hold = func(ctx context.Context) *hold { return holdTable(ctx, from, "res", "ROW EXCLUSIVE") }
	}
	for i := range steps {
		steps[i].direction = v1alpha1.MoveForward
	}
	return steps
}

// backSteps are the phases of a return that last long enough to be seen.
func backSteps(from, to string) []step {
	steps := []step{
		{phase: v1alpha1.MoveDraining},
		{phase: v1alpha1.MovePausing, hold: func(ctx context.Context) *hold { return holdTable(ctx, to, "res", "ROW EXCLUSIVE") }},
		{phase: v1alpha1.MoveSwitching},
		{phase: v1alpha1.MoveRollingBack},
	}
	if from != "" {
		steps = slices.Insert(steps, 0, step{phase: v1alpha1.MoveCopying, copies: true, hold: func(ctx context.Context) *hold {
			return holdTable(ctx, from, "res", "SHARE ROW EXCLUSIVE")
		}})
		steps = slices.Insert(steps, 3, step{phase: v1alpha1.MoveCatchingUp, copies: true, hold: func(ctx context.Context) *hold {
			return holdTable(ctx, from, "delivery", "SHARE ROW EXCLUSIVE")
		}})
	}
	for i := range steps {
		steps[i].direction = v1alpha1.MoveBack
	}
	return steps
}

// victims returns the programs to kill in a step. worker is nil if no API server is known to copy.
type victims func(worker *localcluster.Process) []*localcluster.Process

// controllerAndAPI kills the controller and, at the same time, the API server that copies. If it is not
// known, all API servers are killed.
func controllerAndAPI(worker *localcluster.Process) []*localcluster.Process {
	return append(onlyAPI(worker), paddock.Controllers[0])
}

func onlyAPI(worker *localcluster.Process) []*localcluster.Process {
	if worker == nil {
		return slices.Clone(paddock.APIServers)
	}
	return []*localcluster.Process{worker}
}

func onlyController(*localcluster.Process) []*localcluster.Process {
	return []*localcluster.Process{paddock.Controllers[0]}
}

// killIn begins a part of a move, and kills programs in each of its steps. On a busy machine, it may be too late
// for a step without a hold. Then it leaves out that step and the later ones.
func killIn(ctx context.Context, name, newDatabase string, steps []step, kill victims, begin func()) {
	GinkgoHelper()
	var held *hold
	for i, s := range steps {
		if held == nil && s.hold != nil {
			held = s.hold(ctx)
		}
		if i == 0 {
			begin()
		}
		By("killing programs in the phase " + string(s.phase))
		var copying *localcluster.Process
		if held == nil {
			if !reaches(ctx, name, s.phase, s.direction) {
				AddReportEntry("too late for the phase " + string(s.phase))
				return
			}
		} else {
			awaitPhase(ctx, name, s.phase, s.direction)
			held.blocks(ctx)
			if s.partly {
				held = held.letOnePass(ctx)
				held.blocks(ctx)
			}
			if s.copies {
				copying = worker(ctx, name, newDatabase)
			}
		}
		killed := kill(copying)
		for _, program := range killed {
			Expect(program.Kill()).To(Succeed())
		}
		now := read(ctx, name).Status.Phase
		if held == nil && now != s.phase {
			AddReportEntry("too late for the phase " + string(s.phase))
			start(ctx, killed)
			return
		}
		Expect(now).To(Equal(s.phase), "the phase in which the programs were killed")
		var next *hold
		if i+1 < len(steps) && steps[i+1].hold != nil {
			next = steps[i+1].hold(ctx) // before the programs can reach the phase
		}
		start(ctx, killed)
		if held != nil {
			held.release(ctx)
		}
		held = next
	}
	if held != nil {
		held.release(ctx)
	}
}

// missSwitch begins a part of a move, and pauses an API server from before the pause of writes until
// the move has the phase after the switch. The requests that it has then, it handles with what it knew
// before.
func missSwitch(ctx context.Context, name string, direction v1alpha1.MoveDirection, begin func(), after v1alpha1.MovePhase) {
	GinkgoHelper()
	paused := paddock.APIServers[1]
	begin()
	reaches(ctx, name, v1alpha1.MoveDraining, direction)
	time.Sleep(drainedCopy)
	Expect(paused.Pause()).To(Succeed())
	DeferCleanup(func() { _ = paused.Resume() })
	// On a busy machine, writes may pause before the process does. Then it only knows more.
	AddReportEntry("paused an API server in the phase " + string(read(ctx, name).Status.Phase))
	reaches(ctx, name, after, direction)
	Expect(paused.Resume()).To(Succeed())
}

// drainedCopy is a part of MoveDraining after which no API server holds the lock of the one that copies.
const drainedCopy = 300 * time.Millisecond

// start starts programs that were killed. Without the lease of the killed controller, which would end
// after 15 s, a new one need not wait. The controller starts last: it begins the next phases, which can be over
// before the API servers are ready.
func start(ctx context.Context, killed []*localcluster.Process) {
	GinkgoHelper()
	if slices.Contains(killed, paddock.Controllers[0]) {
		lease := &coordinationv1.Lease{}
		lease.Namespace, lease.Name = "paddock-system", "paddock-controller"
		Expect(client.IgnoreNotFound(admin.Delete(ctx, lease))).To(Succeed())
	}
	lastStart.Store(time.Now().UnixMilli())
	var group sync.WaitGroup
	errs := make([]error, len(killed))
	for i, program := range killed {
		if program != paddock.Controllers[0] {
			group.Go(func() { errs[i] = program.Restart(ctx) })
		}
	}
	group.Wait()
	if i := slices.Index(killed, paddock.Controllers[0]); i >= 0 {
		errs[i] = killed[i].Restart(ctx)
	}
	lastStart.Store(time.Now().UnixMilli())
	Expect(errs).To(HaveEach(BeNil()))
}

// phases are the phases of a move in one direction, in their order.
var phases = []v1alpha1.MovePhase{
	v1alpha1.MovePending, v1alpha1.MoveCopying, v1alpha1.MoveDraining, v1alpha1.MovePausing, v1alpha1.MoveCatchingUp,
	v1alpha1.MoveSwitching, v1alpha1.MoveSwitched, v1alpha1.MoveRollingBack, v1alpha1.MoveRolledBack, v1alpha1.MoveCompleted,
}

// rank returns a number that is larger for later phases. The phases of a return come after all others.
func rank(phase v1alpha1.MovePhase, direction v1alpha1.MoveDirection) int {
	if direction == v1alpha1.MoveBack {
		return len(phases) + slices.Index(phases, phase)
	}
	return slices.Index(phases, phase) // -1: no controller has seen the move yet
}

// reaches waits until a move has a phase and direction, or a later phase, and reports whether it has that
// phase. It may miss a phase that lasts for a second.
func reaches(ctx context.Context, name string, phase v1alpha1.MovePhase, direction v1alpha1.MoveDirection) bool {
	GinkgoHelper()
	wanted, now := rank(phase, direction), -1
	Eventually(func() int {
		status := read(ctx, name).Status
		now = rank(status.Phase, status.Direction)
		return now
	}).WithTimeout(patience).WithPolling(5*time.Millisecond).Should(BeNumerically(">=", wanted), func() string { return describe(ctx, name) })
	return now == wanted
}

// awaitPhase waits until a move has a phase and direction.
func awaitPhase(ctx context.Context, name string, phase v1alpha1.MovePhase, direction v1alpha1.MoveDirection) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		status := read(ctx, name).Status
		if status.Phase == "" { // no controller has seen the move yet
			status.Phase, status.Direction = v1alpha1.MovePending, v1alpha1.MoveForward
		}
		g.Expect(status.Phase).To(Equal(phase))
		g.Expect(status.Direction).To(Equal(direction))
	}).WithTimeout(patience).WithPolling(5*time.Millisecond).Should(Succeed(), func() string { return describe(ctx, name) })
}

// read returns a SiteMove.
func read(ctx context.Context, name string) *v1alpha1.SiteMove {
	GinkgoHelper()
	move := &v1alpha1.SiteMove{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: "demo", Name: name}, move)).To(Succeed())
	return move
}
