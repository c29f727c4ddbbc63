package robustness

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/hack/test/robustness/faultplan"
)

// cutInterval is the time between two cuts of a fault. Connections are open again after a few of them
// at most.
const cutInterval = 100 * time.Millisecond

// faultRunner makes the faults of a plan happen.
type faultRunner map[faultplan.Process]*faultTarget

// faultTarget is a process. Its faults happen one after the other.
type faultTarget struct {
	sync.Mutex
	*victim
}

func newFaultRunner() faultRunner {
	runner := faultRunner{}
	for name, process := range map[faultplan.Process]breakable{
		faultplan.APIServer: paddock.APIServers[0], faultplan.APIServer2: paddock.APIServers[1],
		faultplan.Etcd: control.Etcd(), faultplan.KubeAPIServer: control.APIServer(), faultplan.PostgreSQL: database,
	} {
		runner[name] = &faultTarget{victim: &victim{name: string(name), process: process}}
	}
	return runner
}

// run returns when all faults have ended and all processes serve.
func (r faultRunner) run(ctx context.Context, plan faultplan.Plan) error {
	var faults errgroup.Group
	for _, fault := range plan {
		faults.Go(func() error {
			idle(ctx, fault.Offset)
			target := r[fault.Process]
			target.Lock()
			defer target.Unlock()
			if err := target.suffer(ctx, fault); err != nil {
				return fmt.Errorf("%s: %w", fault, err)
			}
			return nil
		})
	}
	return faults.Wait()
}

// suffer lets the fault happen to the process. Afterwards the process serves, even after an error if
// that is possible.
func (t *faultTarget) suffer(ctx context.Context, fault faultplan.Fault) error {
	switch fault.Action {
	case faultplan.Kill:
		if err := t.process.Kill(); err != nil {
			return err
		}
		t.kills++
		idle(ctx, fault.Duration)
		return t.revive(ctx)
	case faultplan.Pause:
		return t.pause(ctx, fault.Duration)
	case faultplan.RollOut:
		return t.rollOut(ctx)
	case faultplan.Cut:
		return cutRepeatedly(ctx, fault.Duration)
	case faultplan.Full:
		if err := control.SetFull(ctx, true); err != nil {
			return err
		}
		idle(ctx, fault.Duration)
		return control.SetFull(ctx, false)
	default:
		return fmt.Errorf("no code for the action %q", fault.Action)
	}
}

// stopPatience is longer than an API server takes to answer open requests: the grace period of its pods
// is 30 s.
const stopPatience = 35 * time.Second

// withdrawDelay is the time from SIGTERM until workloads send no more requests to an API server. It is
// shorter than the time for which the API server still accepts connections, as a Service needs.
const withdrawDelay = time.Second

// rollOut ends an API server by SIGTERM, and starts it again. An error says that it did not end.
func (t *faultTarget) rollOut(ctx context.Context) error {
	ended := time.Now().Add(stopPatience)
	if err := syscall.Kill(t.process.Pid(), syscall.SIGTERM); err != nil {
		return err
	}
	idle(ctx, withdrawDelay)
	for n, server := range paddock.APIServers[:2] {
		if t.process == breakable(server) {
			withdrawn[n].Store(true)
			defer withdrawn[n].Store(false)
		}
	}
	for t.process.Pid() != 0 {
		if time.Now().After(ended) {
			return fmt.Errorf("%s did not end within %s after SIGTERM", t.name, stopPatience)
		}
		idle(ctx, 20*time.Millisecond)
	}
	return t.revive(ctx)
}

// cutRepeatedly ends all sessions in the database for a time.
func cutRepeatedly(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); idle(ctx, cutInterval) {
		if err := cutPostgres(ctx); err != nil {
			return err
		}
	}
	return nil
}
