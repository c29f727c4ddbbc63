// Package eventstest records the events that writes make, for tests of code that writes to a store.
package eventstest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Made is an event that a write made, with its envelope as it would be delivered.
type Made struct {
	store.Event
	// Text is the envelope. Its sequence is the place of the event among those recorded, from 1.
	Text string
}

// Recorder is a store that records the events of the writes that succeed. Like an engine that
// learns the time of a write only afterwards, it calls Op.Events with a change without times.
type Recorder struct {
	store.Store

	mu   sync.Mutex
	made []Made
}

// Record returns a Recorder of the writes to a store. Writes must be sent to the Recorder.
func Record(s store.Store) *Recorder { return &Recorder{Store: s} }

// Made returns the events of the writes so far, the oldest first.
func (r *Recorder) Made() []Made {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.made)
}

// Write implements store.Store.
func (r *Recorder) Write(ctx context.Context, ops []store.Op) ([]store.Result, error) {
	befores := make([]*store.Record, len(ops))
	for i, op := range ops {
		if before, err := r.Get(ctx, op.Key); err == nil {
			befores[i] = &before
		}
	}
	results, err := r.Store.Write(ctx, ops)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, result := range results {
		if ops[i].Events == nil || result.Outcome == store.Unchanged {
			continue
		}
		change := store.Change{Outcome: result.Outcome, Before: befores[i]}
		if ops[i].Kind != store.Purge {
			after := result.Record
			after.Created, after.Updated = time.Time{}, time.Time{}
			change.After = &after
		}
		for _, event := range ops[i].Events(change) {
			text := event.Envelope.Fill(int64(len(r.made)+1), result.Record.Version, result.Record.Updated)
			r.made = append(r.made, Made{event, string(text)})
		}
	}
	return results, nil
}
