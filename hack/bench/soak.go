package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// soakShare is the part of the capacity at which the practices are used. The capacity is the
	// highest rate at which p99 is below soakLatency and no request fails. benchSoak searches for it
	// downwards from the rates of a closed loop, in steps of soakStep of those rates.
	soakShare, soakStep = 0.7, 0.1
	soakLatency         = time.Second
	// soakSamples is the number of samples of a run. The first third is the warm-up.
	soakSamples = 30
	// soakMeasuring is how long a trial of the capacity lasts. It is long enough to include
	// deliveries, and work that programs do every minute.
	soakMeasuring = time.Minute
)

// soakGauge is a kind of figure of a sample.
type soakGauge struct {
	name string
	// share and least define the maximum growth from the second third of the samples to the last
	// third: share of the mean of the second third, or least if that is more.
	share, least float64
	// unit divides the values that are printed.
	unit float64
}

var soakGauges = []soakGauge{
	{"resident memory, MiB", 0.10, 16 << 20, 1 << 20},
	{"goroutines", 0.10, 20, 1},
	{"open sockets", 0.10, 10, 1},
	{"sessions of Postgres", 0.10, 5, 1},
	{"bytes of data for each write", 0.25, 100, 1},
}

// benchSoak sends soakShare of the requests that both practices can take together for o.length. It
// fails if a request fails, if an event is not delivered, or if memory, goroutines or connections
// grow although the number of records does not.
func benchSoak(ctx context.Context, o options, in installation) error {
	dir, err := os.MkdirTemp("", "paddock-bench-soak")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	practices, server, err := openPractices(ctx, o, in, dir)
	if server != nil {
		defer func() { _ = server.Stop() }()
	}
	if err != nil {
		return err
	}
	probe, err := newSoakProbe(ctx, in, server)
	if err != nil {
		return err
	}
	defer probe.close()
	for _, p := range practices {
		defer p.fan.close()
	}
	// The capacities are measured at the same time, because the practices share the processors.
	closed := make([]float64, len(practices))
	group, measuring := errgroup.WithContext(ctx)
	for i, p := range practices {
		group.Go(func() error {
			var err error
			closed[i], err = p.capacity(measuring, o)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s := &soak{probe: probe, practices: practices, requests: make([]int, len(practices)), failed: make([]int, len(practices))}
	rates, err := s.sustainable(ctx, closed)
	if err != nil {
		return err
	}
	for i, p := range practices {
		capacity := rates[i]
		rates[i] *= soakShare
		fmt.Printf("%s: %.0f requests/s in a closed loop, capacity %.0f requests/s, load of this run %.0f requests/s\n", p.storage, closed[i], capacity, rates[i])
	}
	fmt.Printf("%s at %.0f %% of the capacity, %d CPUs, fsync on\n\n", o.length, 100*soakShare, runtime.NumCPU())
	for range soakSamples {
		if err := s.step(ctx, o.length/soakSamples, rates); err != nil {
			return err
		}
	}
	return errors.Join(s.tell(), s.awaitDeliveries(ctx))
}

// soak is a run and its samples.
type soak struct {
	probe     *soakProbe
	practices []*practice
	// requests is the number of requests that were due for each practice, failed the number of those
	// that failed or were not sent.
	requests, failed []int
	first            error
	samples          []map[string]float64
	p99              [][]time.Duration
}

// sustainable returns the highest rates of the practices, in the ratio of their rates in a closed
// loop, at which p99 of both stays below soakLatency and no request fails. An open loop cannot reach
// the rates of a closed loop: its batches are smaller, so that a request takes up to 1.4 times as much
// processor time.
func (s *soak) sustainable(ctx context.Context, closed []float64) ([]float64, error) {
	for share := 1.0; share > soakStep/2; share -= soakStep {
		rates := slices.Clone(closed)
		for i := range rates {
			rates[i] *= share
		}
		p99 := time.Duration(0)
		for _, took := range s.use(ctx, soakMeasuring, rates) {
			p99 = max(p99, percentile(took, 99))
		}
		failed := 0
		for i := range s.failed {
			failed += s.failed[i]
		}
		clear(s.failed)
		s.first = nil
		fmt.Fprintf(os.Stderr, "%.1f of the rates of a closed loop: p99 %s, %d requests failed or were not sent\n", share, p99, failed)
		for _, p := range s.practices {
			if err := p.awaitDelivered(ctx); err != nil {
				return nil, err
			}
		}
		if p99 < soakLatency && failed == 0 {
			return rates, nil
		}
	}
	return nil, fmt.Errorf("at each tried rate, p99 is %s or more, or requests fail", soakLatency)
}

// use sends requests to all practices at their rates. It returns the sorted durations by practice.
func (s *soak) use(ctx context.Context, length time.Duration, rates []float64) [][]time.Duration {
	took := make([][]time.Duration, len(s.practices))
	var mu sync.Mutex
	var group sync.WaitGroup
	for i, p := range s.practices {
		group.Go(func() {
			all, unsent := openLoop(ctx, rates[i], length, s.requests[i], p.request)
			mu.Lock()
			defer mu.Unlock()
			s.requests[i] += len(all) + unsent
			s.failed[i] += unsent
			p.takeDelivered()
			for _, one := range all {
				if one.err != nil {
					s.failed[i]++
					s.first = cmp.Or(s.first, one.err)
				}
			}
			took[i] = durations(all)
		})
	}
	group.Wait()
	return took
}

// step uses all practices for a while and takes a sample.
func (s *soak) step(ctx context.Context, length time.Duration, rates []float64) error {
	before, err := s.probe.data(ctx)
	if err != nil {
		return err
	}
	p99 := make([]time.Duration, len(s.practices))
	writes := 0.0
	for i, took := range s.use(ctx, length, rates) {
		writes += practiceWrites * float64(len(took))
		p99[i] = percentile(took, 99)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	sample, err := s.probe.sample(ctx)
	if err != nil {
		return err
	}
	after, err := s.probe.data(ctx)
	if err != nil {
		return err
	}
	sample["bytes of data for each write"] = (after - before) / writes
	s.samples, s.p99 = append(s.samples, sample), append(s.p99, p99)
	fmt.Fprintf(os.Stderr, "\rsample %d of %d", len(s.samples), soakSamples)
	return nil
}

// errUnsent is the failure of a run in which no request failed but some were not sent.
var errUnsent = errors.New("no request failed, but clients were too slow to send all")

// awaitDeliveries fails if events that were accepted have not been delivered.
func (s *soak) awaitDeliveries(ctx context.Context) error {
	var failures []error
	for i, p := range s.practices {
		err := p.awaitDelivered(ctx)
		fmt.Printf("%s: %d requests, of which %d failed or were not sent; %d events accepted, %d deliveries\n", p.storage, s.requests[i], s.failed[i], p.published.Load(), p.delivered)
		if err != nil {
			failures = append(failures, err)
		}
		if s.failed[i] > 0 {
			failures = append(failures, fmt.Errorf("%s: %d requests failed or were not sent; the first failure of any storage: %w", p.storage, s.failed[i], cmp.Or(s.first, errUnsent)))
		}
	}
	return errors.Join(failures...)
}

// tell prints the means of the thirds and fails if a figure has grown beyond its bound.
func (s *soak) tell() error {
	fmt.Print("\n| | first third | second third | last third | growth | allowed |\n|---|---|---|---|---|---|\n")
	var failures []error
	third := len(s.samples) / 3
	for _, gauge := range soakGauges {
		for _, name := range s.probe.names {
			if !strings.HasSuffix(name, gauge.name) {
				continue
			}
			var means [3]float64
			for i := range means {
				for _, sample := range s.samples[i*third : (i+1)*third] {
					means[i] += sample[name] / float64(third)
				}
			}
			growth, allowed := means[2]-means[1], max(gauge.least, gauge.share*means[1])
			fmt.Printf("| %s | %.1f | %.1f | %.1f | %+.1f | %.1f |\n", name, means[0]/gauge.unit, means[1]/gauge.unit, means[2]/gauge.unit, growth/gauge.unit, allowed/gauge.unit)
			if growth > allowed {
				failures = append(failures, fmt.Errorf("%s grew by %.1f, want at most %.1f", name, growth/gauge.unit, allowed/gauge.unit))
			}
		}
	}
	for i, p := range s.practices {
		fmt.Printf("| %s: p99, ms |", p.storage)
		for t := range 3 {
			var longest []time.Duration
			for _, p99 := range s.p99[t*third : (t+1)*third] {
				longest = append(longest, p99[i])
			}
			fmt.Printf(" %s |", quartiles("%.0f", milliseconds(longest)))
		}
		fmt.Println(" | |")
	}
	fmt.Println()
	return errors.Join(failures...)
}
