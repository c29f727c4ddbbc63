package robustness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
	"github.com/paddock-health/paddock/hack/dev/localpaddock"
)

// victim is a process and what was done to it.
type victim struct {
	name     string
	process  breakable
	kills    int
	pauses   int
	downtime time.Duration
	// leasesLost counts the ends of a controller that is not to blame for them.
	leasesLost int
}

// breakable is what can be killed and paused.
type breakable interface {
	Kill() error
	Restart(context.Context) error
	Pause() error
	Resume() error
	// Pid is 0 if it is dead.
	Pid() int
}

// restartPatience is how long a killed process may take to serve again, while
// others are being killed too.
const restartPatience = 2 * time.Minute

// crash kills the process and restarts it at once.
func (v *victim) crash(ctx context.Context) error {
	if err := v.process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", v.name, err)
	}
	v.kills++
	return v.revive(ctx)
}

// revive restarts a dead process until it serves. It may end again before that,
// when what it needs is being killed too.
func (v *victim) revive(ctx context.Context) error {
	died := time.Now()
	defer func() { v.downtime += time.Since(died) }()
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, restartPatience, true, func(ctx context.Context) (bool, error) {
		last = v.process.Restart(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("restart %s: %w: %w", v.name, err, last)
	}
	return nil
}

// pause stops the process in the middle of what it does, for a while.
func (v *victim) pause(ctx context.Context, d time.Duration) error {
	if err := v.process.Pause(); err != nil {
		return err
	}
	v.pauses++
	idle(ctx, d)
	return v.process.Resume()
}

// breakAPIServer kills and pauses an API server at random times. Long pauses are
// longer than a request to the cluster may take.
func breakAPIServer(ctx context.Context, v *victim, random *rand.Rand, kills, pauses, longPauses int) error {
	for _, n := range random.Perm(kills + pauses + longPauses) {
		idle(ctx, between(random, 50*time.Millisecond, 1200*time.Millisecond))
		var err error
		switch {
		case n < kills:
			err = v.crash(ctx)
		case n < kills+pauses:
			err = v.pause(ctx, between(random, 100*time.Millisecond, 3*time.Second))
		default:
			err = v.pause(ctx, between(random, 16*time.Second, 18*time.Second))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// breakControlPlane kills one process of the control plane after the other, and
// pauses them as often.
func breakControlPlane(ctx context.Context, victims []*victim, random *rand.Rand, killsEach int) error {
	faults := 2 * killsEach * len(victims)
	for _, n := range random.Perm(faults) {
		idle(ctx, between(random, time.Second, 3*time.Second))
		v := victims[n%len(victims)]
		var err error
		if n < faults/2 {
			err = v.crash(ctx)
		} else {
			err = v.pause(ctx, between(random, 100*time.Millisecond, 2*time.Second))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// superviseController restarts the controller whenever it lost its lease, as a
// cluster would, until ctx ends. Any other end is an error.
func superviseController(ctx context.Context, v *victim, controller *localcluster.Process) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-controller.Exited():
		}
		if err := localpaddock.LostLease(controller); err != nil {
			return err
		}
		v.leasesLost++
		if err := v.revive(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func between(random *rand.Rand, shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(random.Int64N(int64(longest-shortest)))
}
