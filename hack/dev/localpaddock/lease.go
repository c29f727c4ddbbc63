package localpaddock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

// leaseLost is in the last line that a controller logs if it ends because it could not renew its Lease for
// 10 s: kube-apiserver could not be reached, or the machine was busy or suspended.
const leaseLost = "leader election lost"

// restartTimeout is how long kube-apiserver may be away until a controller that has lost its Lease is given up.
const restartTimeout = 2 * time.Minute

// KeepController restarts a controller that has lost its Lease, as the kubelet does, until ctx ends. It
// returns an error if the controller ends for another reason, or cannot be started again within restartTimeout.
func KeepController(ctx context.Context, controller *localcluster.Process) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-controller.Exited():
		}
		if err := LostLease(controller); err != nil {
			return err
		}
		if err := restart(ctx, controller); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// restart starts a controller again, which fails while kube-apiserver cannot be reached.
func restart(ctx context.Context, controller *localcluster.Process) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, restartTimeout, true, func(ctx context.Context) (bool, error) {
		last = controller.Restart(ctx)
		return last == nil, nil
	})
	return errors.Join(err, last)
}

// LostLease returns nil if a controller that has ended had lost its Lease, and otherwise an error with the
// last line of its log.
func LostLease(controller *localcluster.Process) error {
	log, err := os.ReadFile(controller.LogFile())
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, leaseLost) {
		return fmt.Errorf("the controller ended: %s (the whole log is %s)", last, controller.LogFile())
	}
	return nil
}
