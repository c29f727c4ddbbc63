package postgres

import "context"

// share limits the number of sessions (connections of a pool) that its users hold at the same time.
// The searches, histories and dumps of a site have one, because each may last as long as
// statement_timeout allows, and other sites use the same pool. Maintenance and Replicas have a share
// each.
type share chan struct{}

// reservedFraction is the divisor of the pool's size: one connection in four is not available to
// the share of a site. It is reserved for other sites, and for the site's own reads and writes.
const reservedFraction = 4

func newShare(connections int32) share {
	return make(share, max(1, connections-connections/reservedFraction))
}

// acquire waits until a session is free and takes it. The caller must call release. Errors:
// ctx.Err().
func (s share) acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tryAcquire takes a session if one is free, and reports whether it did.
func (s share) tryAcquire() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s share) release() { <-s }
