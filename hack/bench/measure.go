package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// workload is one kind of request. n rises by one with each call of run.
type workload struct {
	name string
	run  func(ctx context.Context, n int) error
}

// turn is the result of one turn of a workload.
type turn struct {
	perSecond float64
	p50, p99  time.Duration
	// took is the mean processor time of a request, zero if options.processes is nil.
	took processorTime
}

type result struct {
	turns  []turn
	errors int
	first  error
}

// selected returns the workloads whose name contains a text. It changes the slice all.
func selected(all []workload, text string) []workload {
	return slices.DeleteFunc(all, func(w workload) bool { return !strings.Contains(w.name, text) })
}

// measure runs o.rounds rounds, after one to warm up. In each round, each workload has one turn. A
// slow phase of the machine therefore affects all workloads.
func measure(ctx context.Context, o options, workloads []workload) map[string]*result {
	results := map[string]*result{}
	next := map[string]int{}
	for round := range o.rounds + 1 {
		for _, w := range workloads {
			fmt.Fprintf(os.Stderr, "\rround %d of %d: %-40s", round, o.rounds, w.name)
			t, errors, first := takeTurn(ctx, o, w, next)
			if results[w.name] == nil {
				results[w.name] = &result{}
			}
			r := results[w.name]
			r.errors += errors
			r.first = cmp.Or(r.first, first)
			if round > 0 { // the first round warms caches and connections
				r.turns = append(r.turns, t)
			}
		}
	}
	fmt.Fprintln(os.Stderr)
	return results
}

func takeTurn(ctx context.Context, o options, w workload, next map[string]int) (turn, int, error) {
	var mu sync.Mutex
	var group sync.WaitGroup
	var took []time.Duration
	var failed int
	var first error
	before := o.processes.spent()
	began := time.Now()
	for range o.clients {
		group.Go(func() {
			for time.Since(began) < o.turn {
				mu.Lock()
				n := next[w.name]
				next[w.name]++
				mu.Unlock()
				sent := time.Now()
				err := w.run(ctx, n)
				spent := time.Since(sent)
				mu.Lock()
				if err != nil {
					failed++
					first = cmp.Or(first, err)
				}
				took = append(took, spent)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	elapsed := time.Since(began)
	after := o.processes.spent()
	slices.Sort(took)
	return turn{
		perSecond: float64(len(took)-failed) / elapsed.Seconds(),
		p50:       took[len(took)/2], p99: took[len(took)*99/100],
		took: after.since(before, len(took)),
	}, failed, first
}

// median orders the turns by throughput and returns the one in the middle.
func (r *result) median() turn {
	turns := slices.SortedFunc(slices.Values(r.turns), func(a, b turn) int { return cmp.Compare(a.perSecond, b.perSecond) })
	return turns[len(turns)/2]
}

// span returns the lowest and the highest throughput of the turns.
func (r *result) span() (least, most float64) {
	least, most = r.turns[0].perSecond, r.turns[0].perSecond
	for _, t := range r.turns {
		least, most = min(least, t.perSecond), max(most, t.perSecond)
	}
	return least, most
}

// ratio is the throughput of the workload of, divided by that of the workload to. goal is the minimum
// that it should reach; 0 means no goal.
type ratio struct {
	name, of, to string
	goal         float64
}

func report(out io.Writer, o options, results map[string]*result, ratios []ratio) error {
	fmt.Fprintf(out, "%d clients, %d turns of %s each, %d CPUs, fsync on\n\n", o.clients, o.rounds, o.turn, runtime.NumCPU())
	fmt.Fprint(out, "| workload | requests/s (range) | p50 | p99 | errors |")
	rule := "\n|---|---|---|---|---|"
	if o.processes != nil {
		fmt.Fprint(out, " CPU of the server per request | of the database | of the load generator |")
		rule += "---|---|---|"
	}
	fmt.Fprintln(out, rule)
	names := make([]string, 0, len(results))
	for name := range results {
		names = append(names, name)
	}
	slices.Sort(names)
	var broken error
	for _, name := range names {
		r := results[name]
		m := r.median()
		least, most := r.span()
		fmt.Fprintf(out, "| %s | %.0f (%.0f–%.0f) | %.1f ms | %.1f ms | %d |", name, m.perSecond, least, most,
			m.p50.Seconds()*1000, m.p99.Seconds()*1000, r.errors)
		if o.processes != nil {
			fmt.Fprintf(out, " %d µs | %d µs | %d µs |", m.took.server.Microseconds(), m.took.database.Microseconds(), m.took.client.Microseconds())
		}
		fmt.Fprintln(out)
		if r.first != nil {
			broken = fmt.Errorf("%s: %d requests failed, the first with: %w", name, r.errors, r.first)
		}
	}
	fmt.Fprint(out, "\n| ratio | median (range over the turns) | goal |\n|---|---|---|\n")
	for _, q := range ratios {
		values := make([]float64, o.rounds)
		for i := range values {
			values[i] = results[q.of].turns[i].perSecond / results[q.to].turns[i].perSecond
		}
		slices.Sort(values)
		goal := ""
		if q.goal > 0 {
			goal = fmt.Sprintf("%.2f", q.goal)
		}
		fmt.Fprintf(out, "| %s | %.2f (%.2f–%.2f) | %s |\n", q.name, values[len(values)/2], values[0], values[len(values)-1], goal)
	}
	return broken
}
