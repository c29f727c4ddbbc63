package postgres

import "context"

// share is how many sessions a site's searches and histories may hold at a time: they may
// last as long as a statement may, and other sites of the database want some too.
type share chan struct{}

// leftToOthers is which part of a pool a site's searches leave to other sites, and to its own
// reads and writes.
const leftToOthers = 4

func newShare(connections int32) share {
	return make(share, max(1, connections-connections/leftToOthers))
}

// take waits for a session until ctx ends. Who has taken one gives it back.
func (s share) take(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s share) giveBack() { <-s }
