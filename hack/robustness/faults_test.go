package robustness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/paddock-health/paddock/hack/localcluster"
)

// victim is a process and what was done to it.
type victim struct {
	name     string
	process  *localcluster.Process
	kills    int
	pauses   int
	downtime time.Duration
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

// breakAPIServer kills and pauses an API server at random times.
func breakAPIServer(ctx context.Context, v *victim, random *rand.Rand, kills, pauses int) error {
	for _, n := range random.Perm(kills + pauses) {
		idle(ctx, between(random, 50*time.Millisecond, 1200*time.Millisecond))
		var err error
		if n < kills {
			err = v.crash(ctx)
		} else {
			err = v.pause(ctx, nap(random))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nap is how long a process is paused: seconds, or longer than a request to the
// cluster may take.
func nap(random *rand.Rand) time.Duration {
	if random.IntN(8) == 0 {
		return between(random, 16*time.Second, 18*time.Second)
	}
	return between(random, 100*time.Millisecond, 3*time.Second)
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

func between(random *rand.Rand, shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(random.Int64N(int64(longest-shortest)))
}
