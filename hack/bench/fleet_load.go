package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// loadClients is the maximum number of concurrent requests to random Sites during a drain.
	loadClients = 16
	// probeInterval is the delay between two writes to a Site that is moved.
	probeInterval = 50 * time.Millisecond
)

// fleetLoad sends requests to random Sites at a steady pace; half of them are reads, half are creates.
// In addition, it creates a record in each Site that is being moved every probeInterval.
type fleetLoad struct {
	cancel context.CancelFunc
	group  sync.WaitGroup
	probes map[string]context.CancelFunc

	mu sync.Mutex
	// outcomes has the number of requests by the kind of request and outcome.
	outcomes map[string]map[string]int
	// longest is the duration of the longest request of each kind.
	longest map[string]time.Duration
	// failures are the first failures.
	failures []string
	// pauses has the longest time between two acknowledged writes of a probe, by Site.
	pauses map[string]time.Duration
}

// The outcomes of a request.
const (
	outcomeOK     = "succeeded"
	outcomeMoving = "503 site_moving"
	outcomeFailed = "failed"
)

// maxShownFailures is the maximum number of failures that are printed.
const maxShownFailures = 5

func (f *fleet) startLoad(ctx context.Context) *fleetLoad {
	ctx, cancel := context.WithCancel(ctx)
	l := &fleetLoad{
		cancel: cancel, probes: map[string]context.CancelFunc{},
		outcomes: map[string]map[string]int{}, longest: map[string]time.Duration{}, pauses: map[string]time.Duration{},
	}
	pace := rate.NewLimiter(rate.Limit(f.options.rate), 1)
	for range loadClients {
		l.group.Go(func() {
			for n := 0; pace.Wait(ctx) == nil; n++ {
				door := f.anyClinic().anyDoor()
				requests := context.WithoutCancel(ctx) // the requests at the end of the load must not fail
				if n%2 == 0 {
					l.count("reads of random Sites", func() error { return door.read(requests, n) })
				} else {
					l.count("creates in random Sites", func() error { return door.create(requests, n) })
				}
			}
		})
	}
	return l
}

// count sends and counts a request, and returns its outcome.
func (l *fleetLoad) count(kind string, send func() error) string {
	began := time.Now()
	err := send()
	took := time.Since(began)
	outcome := outcomeOK
	switch {
	case err != nil && strings.Contains(err.Error(), ": 503 ") && strings.Contains(err.Error(), "site_moving"):
		outcome = outcomeMoving
	case err != nil:
		outcome = outcomeFailed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.outcomes[kind] == nil {
		l.outcomes[kind] = map[string]int{}
	}
	l.outcomes[kind][outcome]++
	l.longest[kind] = max(l.longest[kind], took)
	if outcome == outcomeFailed && len(l.failures) < maxShownFailures {
		l.failures = append(l.failures, time.Now().Format("15:04:05.000 ")+err.Error())
	}
	return outcome
}

// probe starts to write a Site until endProbes ends the probe. It does nothing if the Site has a probe.
func (l *fleetLoad) probe(ctx context.Context, c clinic) {
	if l.probes[c.name] != nil {
		return
	}
	ctx, l.probes[c.name] = context.WithCancel(ctx)
	l.group.Go(func() {
		last := time.Now()
		for n := 0; ctx.Err() == nil; n++ {
			create := func() error { return c.anyDoor().create(context.WithoutCancel(ctx), n) }
			if l.count("creates in moved Sites", create) == outcomeOK {
				l.mu.Lock()
				l.pauses[c.name] = max(l.pauses[c.name], time.Since(last))
				l.mu.Unlock()
				last = time.Now()
			}
			time.Sleep(probeInterval)
		}
	})
}

// endProbes ends the probes of Sites that are selected by their names.
func (l *fleetLoad) endProbes(selects func(name string) bool) {
	for name, cancel := range l.probes {
		if selects(name) {
			cancel()
			delete(l.probes, name)
		}
	}
}

// stop ends the load and waits for its requests. Stopping again changes nothing.
func (l *fleetLoad) stop() {
	l.endProbes(func(string) bool { return true })
	l.cancel()
	l.group.Wait()
}

func (l *fleetLoad) tell() {
	outcomes := []string{outcomeOK, outcomeMoving, outcomeFailed}
	fmt.Printf("| during the drain | %s | longest |\n|---|---|---|---|---|\n", strings.Join(outcomes, " | "))
	for _, kind := range slices.Sorted(maps.Keys(l.outcomes)) {
		fmt.Printf("| %s |", kind)
		for _, outcome := range outcomes {
			fmt.Printf(" %d |", l.outcomes[kind][outcome])
		}
		fmt.Printf(" %s |\n", l.longest[kind].Round(time.Millisecond))
	}
	for _, failure := range l.failures {
		fmt.Println("\nfailed:", failure)
	}
	if pauses := slices.Sorted(maps.Values(l.pauses)); len(pauses) > 0 {
		fmt.Printf("\nLongest time between two acknowledged writes of a moved Site, of %d Sites: median %s, longest %s\n",
			len(pauses), percentile(pauses, 50).Round(time.Millisecond), pauses[len(pauses)-1].Round(time.Millisecond))
	}
}
