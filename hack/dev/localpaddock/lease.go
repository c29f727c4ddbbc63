package localpaddock

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/paddock-health/paddock/hack/dev/localcluster"
)

// leaseLost is in the last line that a controller logs if it ends because it could not renew its Lease for
// 10 s: kube-apiserver could not be reached, or the machine was busy or suspended.
const leaseLost = "leader election lost"

// KeepController restarts a controller that has lost its Lease, as the kubelet does, until ctx ends. It
// returns an error if the controller ends for another reason, or cannot be started again.
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
		if err := controller.Restart(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
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
