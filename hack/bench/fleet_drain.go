package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/paddock-health/paddock/api/v1alpha1"
)

const (
	// drainPoll is the interval between checks for new SiteMoves, and drainDeadline is the maximum
	// duration of a drain. At the limit the set fails.
	drainPoll     = 250 * time.Millisecond
	drainDeadline = time.Hour
)

// drainDatabase drains the last database while clients read and write all Sites, and reports what fails
// and how long writes pause.
func (f *fleet) drainDatabase(ctx context.Context) error {
	const last = fleetDatabases - 1
	placed, err := f.placed(ctx)
	if err != nil {
		return err
	}
	load := f.startLoad(ctx)
	defer load.stop()
	began := time.Now()
	patch := fmt.Sprintf(`[{"op":"add","path":"/spec/storage/postgres/pool/databases/%d/drain","value":true}]`, last)
	if _, err := f.in.paddock.Kubectl(ctx, "patch", "siteclass", fleetClass, "--type=json", "--patch", patch); err != nil {
		return err
	}
	if err := f.awaitEmpty(ctx, poolDatabase(last), load); err != nil {
		return err
	}
	took := time.Since(began)
	load.stop()
	fmt.Printf("\nDrain of %s with %d Sites, during %d requests per second to random Sites and writes every %s to each Site that is moved: empty after %.0f s\n\n",
		poolDatabase(last), placed[poolDatabase(last)], f.options.rate, probeInterval, took.Seconds())
	load.tell()
	return f.expectRecords(ctx)
}

// awaitEmpty returns when a database has no Sites and its SiteMoves are gone. Until then, it makes the
// load probe each Site that is being moved, and checks the capacities of the databases. A move that is
// rolled back is an error.
func (f *fleet) awaitEmpty(ctx context.Context, database string, load *fleetLoad) error {
	byNamespace := map[string]clinic{}
	for _, c := range f.clinics {
		byNamespace[c.name] = c
	}
	checked := time.Now()
	return wait.PollUntilContextTimeout(ctx, drainPoll, drainDeadline, true, func(ctx context.Context) (bool, error) {
		moves := &v1alpha1.SiteMoveList{}
		if err := f.objects.List(ctx, moves, client.MatchingLabels{v1alpha1.DrainLabel: fleetClass}); err != nil {
			return false, err
		}
		var moving []string
		for i := range moves.Items {
			move := &moves.Items[i]
			if move.Status.Phase == v1alpha1.MoveRolledBack {
				return false, fmt.Errorf("the move of %s was rolled back: %s", move.Namespace, move.Status.Failure)
			}
			if !move.Status.Phase.Ended() {
				moving = append(moving, move.Namespace)
				load.probe(ctx, byNamespace[move.Namespace])
			}
		}
		load.endProbes(func(name string) bool { return !slices.Contains(moving, name) })
		if time.Since(checked) < fleetPoll { // the check lists all SiteClaims
			return false, nil
		}
		placed, err := f.placed(ctx)
		if err != nil {
			return false, err
		}
		checked = time.Now()
		fmt.Fprintf(os.Stderr, "\r%s has %d Sites, %d are moved  ", database, placed[database], len(moving))
		return placed[database] == 0 && len(moves.Items) == 0, nil
	})
}
