package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// fleetTurns has the results of one kind of request: one turn per round.
type fleetTurns struct {
	p50, p99 []float64 // milliseconds
	requests int
	failed   int
	first    error
	// reviews is how many reviews of tokens and rights kube-apiserver has made during the turns.
	reviews float64
}

// The targets of compareLatency.
const (
	oneSite = "one Site"
	// oneSiteManyCallers has as many callers as there are Sites. Each needs reviews of its token and
	// rights.
	oneSiteManyCallers = "one Site, a random caller"
	randomSites        = "random Sites"
)

// fleetWarmUp is the length of the first turn, which is not measured. It fills the caches as a steady
// load does.
const fleetWarmUp = time.Minute

// compareLatency compares requests to random Sites with requests at the same rate to one Site alone,
// by one caller and by many. All turns of a row follow each other, because caches lose entries during
// the turns of other rows.
func (f *fleet) compareLatency(ctx context.Context) error {
	callers, err := f.createCallers(ctx, f.clinics[0])
	if err != nil {
		return err
	}
	targets := []struct {
		name   string
		choose func() *site
	}{
		{oneSite, func() *site { return f.clinics[0].anyDoor() }},
		{oneSiteManyCallers, func() *site { return callers[rand.IntN(len(callers))] }},
		{randomSites, func() *site { return f.anyClinic().anyDoor() }},
	}
	kinds := []struct {
		name string
		send func(s *site, ctx context.Context, n int) error
	}{{"read", (*site).read}, {"create", (*site).create}}
	turns := map[string]*fleetTurns{}
	for _, kind := range kinds {
		for _, target := range targets {
			name, turn := kind.name+", "+target.name, fleetWarmUp
			for round := range f.options.rounds + 1 {
				fmt.Fprintf(os.Stderr, "\rround %d of %d: %-40s", round, f.options.rounds, name)
				reviewed, err := reviews(ctx, f.in)
				if err != nil {
					return err
				}
				took, failed, first := pacedTurn(ctx, f.options.rate, turn, func(ctx context.Context, n int) error {
					return kind.send(target.choose(), ctx, n)
				})
				now, err := reviews(ctx, f.in)
				if err != nil {
					return err
				}
				if turns[name] == nil {
					turns[name] = &fleetTurns{}
				}
				if round > 0 {
					turns[name].add(milliseconds(took), failed, first, now-reviewed)
				}
				turn = f.options.turn
			}
		}
	}
	fmt.Fprintln(os.Stderr)
	fmt.Printf("\n%d requests per second, %d rounds of %s for each row; medians of the rounds (quartiles)\n\n", f.options.rate, f.options.rounds, f.options.turn)
	fmt.Print("| requests | number | failed | reviews by kube-apiserver per request | p50 | p99 | p50 relative to one Site | p99 relative to one Site | p99 relative to one Site with a random caller | goal |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, kind := range kinds {
		alone, callers := turns[kind.name+", "+oneSite], turns[kind.name+", "+oneSiteManyCallers]
		for _, target := range targets {
			t := turns[kind.name+", "+target.name]
			columns := "| | | | |"
			if target.name != oneSite {
				columns = fmt.Sprintf("| %s | %s | | |", ratios(t.p50, alone.p50), ratios(t.p99, alone.p99))
			}
			if target.name == randomSites {
				columns = fmt.Sprintf("| %s | %s | %s | 1.5 |", ratios(t.p50, alone.p50), ratios(t.p99, alone.p99), ratios(t.p99, callers.p99))
			}
			t.tell(kind.name+", "+target.name, columns)
		}
	}
	return nil
}

func (t *fleetTurns) add(took []float64, failed int, first error, reviews float64) {
	if first != nil {
		t.first = first
		fmt.Fprintln(os.Stderr, "\n", first)
	}
	t.requests, t.failed, t.reviews = t.requests+len(took), t.failed+failed, t.reviews+reviews
	t.p50, t.p99 = append(t.p50, took[len(took)*50/100]), append(t.p99, took[len(took)*99/100])
}

func (t *fleetTurns) tell(name, columns string) {
	fmt.Printf("| %s | %d | %d | %.2f | %s ms | %s ms %s\n", name, t.requests, t.failed, t.reviews/float64(t.requests),
		quartiles("%.1f", slices.Clone(t.p50)), quartiles("%.1f", slices.Clone(t.p99)), columns)
}

// milliseconds sorts took in place, and returns its durations in milliseconds.
func milliseconds(took []time.Duration) []float64 {
	slices.Sort(took)
	values := make([]float64, len(took))
	for i, d := range took {
		values[i] = 1000 * d.Seconds()
	}
	return values
}

// ratios returns the median and the quartiles of the ratios of the two values of each round.
func ratios(of, to []float64) string {
	values := make([]float64, len(of))
	for i := range of {
		values[i] = of[i] / to[i]
	}
	return quartiles("%.2f", values)
}
