package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// benchByHand compares searches and writes of a site in Postgres with a handler whose statements and
// tables are written by hand for exactly these requests.
func benchByHand(ctx context.Context, o options, in installation) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	return withDatabase(ctx, &o, in, func(d *databaseBench) error {
		b := &byHandBench{databaseBench: d, searches: byHandSearches(d.database)}
		if err := b.prepare(ctx, o.processes); err != nil {
			return err
		}
		fmt.Print("## Searches, nothing is written\n\n")
		idle := measure(ctx, o, selected(b.reads(), o.only))
		if err := report(os.Stdout, o, idle, measured(b.readRatios(), idle)); err != nil {
			return err
		}
		fmt.Printf("\n## Searches, %d creates a second\n\n", writesPerSecond)
		writing, end := context.WithCancel(ctx)
		go b.writeSteadily(writing)
		busy := measure(ctx, o, selected(b.reads(), o.only))
		end()
		if err := report(os.Stdout, o, busy, measured(b.readRatios(), busy)); err != nil {
			return err
		}
		return b.writes(ctx, o, in)
	})
}

type byHandBench struct {
	*databaseBench
	searches []byHandSearch
	hand     *site
}

// prepare makes the tables, and starts a process that runs the hand-written statements on them and
// responds with the bytes of the API's responses. It adds the process to all.
func (b *byHandBench) prepare(ctx context.Context, all *processes) error {
	if err := b.addRelated(ctx); err != nil {
		return err
	}
	var err error
	if b.pool, err = pgxpool.New(ctx, b.database.uri); err != nil {
		return err
	}
	if err := b.database.makeTables(ctx, b.pool); err != nil {
		return err
	}
	if err := b.database.vacuum(ctx); err != nil {
		return err
	}
	answers, err := os.MkdirTemp("", "paddock-bench-answers")
	if err != nil {
		return err
	}
	for i, s := range b.searches {
		answer, err := b.site.send(ctx, http.MethodGet, s.path, nil, http.StatusOK)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if err := b.sameNumber(ctx, s, answer); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(answers, fmt.Sprint(i)), answer, 0o600); err != nil {
			return err
		}
	}
	description, err := json.Marshal(handOf{b.database.uri, answers, b.database.records, b.database.loaded})
	if err != nil {
		return err
	}
	address, pid, err := startSelf(ctx, "-byhand", string(description))
	b.hand = newSite(address, "none")
	all.servers = append(all.servers, pid)
	return err
}

// sameNumber returns an error unless the hand-written statement finds as many records as the search.
func (b *byHandBench) sameNumber(ctx context.Context, s byHandSearch, answer []byte) error {
	var bundle struct{ Entry []json.RawMessage }
	if err := json.Unmarshal(answer, &bundle); err != nil {
		return err
	}
	rows, err := b.pool.Query(ctx, s.sql, s.args...)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	n := 0
	for rows.Next() {
		n++
	}
	if rows.Err() == nil && n != len(bundle.Entry) {
		return fmt.Errorf("%s finds %d records, but the hand-written statement finds %d", s.name, len(bundle.Entry), n)
	}
	return rows.Err()
}

func (b *byHandBench) reads() []workload {
	var all []workload
	for i, s := range b.searches {
		all = append(all,
			workload{s.name + ": raw", func(ctx context.Context, _ int) error { return send(ctx, b.pool, []statement{{s.sql, s.args}}) }},
			workload{s.name + ": by hand", func(ctx context.Context, _ int) error {
				return b.hand.do(ctx, http.MethodGet, fmt.Sprintf("/search/%d", i), nil, http.StatusOK)
			}},
			workload{s.name, func(ctx context.Context, _ int) error {
				return b.site.do(ctx, http.MethodGet, s.path, nil, http.StatusOK)
			}},
		)
	}
	return all
}

func (b *byHandBench) readRatios() []ratio {
	all := []ratio{
		{"month by two ends per month", monthByTwoEnds, aMonthAndGender, 1 / 1.3},
		{"last updated first per newest first", lastUpdatedFirst, newestFirst, 0.85},
		{"poll by _lastUpdated per newest first", pollByTime, newestFirst, 0.85},
	}
	for _, s := range b.searches {
		all = append(all, ratio{s.name + " per by hand", s.name, s.name + ": by hand", 0})
	}
	return all
}

// writesPerSecond is the rate of creates during the second measurement of searches.
const writesPerSecond = 500

// writeSteadily creates Patients like those of the database until ctx ends, so that the share of the
// Patients that a search finds stays the same. Each create runs in a goroutine of its own, so that a slow
// create does not delay the next one.
func (b *byHandBench) writeSteadily(ctx context.Context) {
	tick := time.NewTicker(time.Second / writesPerSecond)
	defer tick.Stop()
	for n := b.database.records; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_, _, patient := record(n, b.database.practitioners())
			go func() { _ = b.site.do(ctx, http.MethodPost, "/patient", patient, http.StatusCreated) }() // a failed create only makes the load a little smaller
		}
	}
}

// writes measures creates and updates by one, 16 and 64 clients, and batches of 20 creates.
func (b *byHandBench) writes(ctx context.Context, o options, in installation) error {
	for _, clients := range []int{1, 16, 64} {
		o.clients = clients
		before, err := b.cost(ctx, in)
		if err != nil {
			return err
		}
		fmt.Printf("\n## Writes, %d clients\n\n", clients)
		results := measure(ctx, o, []workload{
			{"create: by hand", func(ctx context.Context, n int) error {
				return b.hand.do(ctx, http.MethodPost, "/create", body(n), http.StatusCreated)
			}},
			{"create: Patient", b.site.create},
			{"update: by hand", b.updateByHand},
			{"update: Patient", b.site.update},
			{"batch of 20 creates: by hand", b.createBatchByHand},
			{"batch of 20 creates", b.createBatch},
		})
		after, err := b.cost(ctx, in)
		if err != nil {
			return err
		}
		after.tell(before)
		if err := report(os.Stdout, o, results, []ratio{
			{"create per create by hand", "create: Patient", "create: by hand", 0},
			{"update per update by hand", "update: Patient", "update: by hand", 0},
			{"batch per batch by hand", "batch of 20 creates", "batch of 20 creates: by hand", 0},
		}); err != nil {
			return err
		}
	}
	return nil
}
