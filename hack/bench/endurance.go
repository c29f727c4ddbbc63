package main

import (
	"context"
	"fmt"
)

// benchEndurance runs mix for o.rounds turns, one after the other, and prints the throughput of the
// last turn relative to that of the second. The ratio shows whether autovacuum keeps up.
func benchEndurance(ctx context.Context, o options, in installation) error {
	return withDatabase(ctx, &o, in, func(b *databaseBench) error {
		for n := range o.clients {
			if err := b.site.create(ctx, n); err != nil {
				return err
			}
		}
		results := measure(ctx, o, []workload{{"mix", b.mix}})
		turns := results["mix"].turns
		fmt.Print("| turn | requests/s | p50 | p99 | CPU of the API server per request | of the database |\n|---|---|---|---|---|---|\n")
		for i, t := range turns {
			fmt.Printf("| %d | %.0f | %.1f ms | %.1f ms | %d µs | %d µs |\n", i+1, t.perSecond,
				t.p50.Seconds()*1000, t.p99.Seconds()*1000, t.took.server.Microseconds(), t.took.database.Microseconds())
		}
		fmt.Printf("\nThroughput of the last turn (%s) relative to the second turn: %.2f (goal 0.90), %d errors\n", o.turn,
			turns[len(turns)-1].perSecond/turns[min(1, len(turns)-1)].perSecond, results["mix"].errors)
		return results["mix"].first
	})
}
