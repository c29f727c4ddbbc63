package delivery

import "context"

// Archived is a delivery with what another engine needs to continue it.
type Archived struct {
	// Delivery has the Envelope of its event, unless the engine has dropped it.
	Delivery
	// Scheduled is the number of attempts since the retry schedule began.
	Scheduled int
}

// Backlog is what a site has yet to deliver.
type Backlog struct {
	// Deliveries are the pending deliveries, and those of events that were not handed on yet.
	Deliveries []Archived
	// States are the states of webhooks, by id.
	States map[string]State
	// Sequence is at least the sequence of each event of the site so far.
	Sequence int64
}

// Archive copies the deliveries of a site from one engine to another. No delivery of the site may be
// attempted meanwhile.
type Archive interface {
	// DumpPending returns what is pending. Errors: store.ErrUnavailable.
	DumpPending(ctx context.Context) (Backlog, error)
	// DumpEnded returns deliveries that have ended, in an order that the engine chooses, after a
	// position that is empty for the first page. next is empty after the last page. Errors:
	// store.ErrUnavailable.
	DumpEnded(ctx context.Context, after string, count int) (found []Archived, next string, err error)
	// RestorePending replaces all pending deliveries of the site. Each delivery is due at its
	// NextAttempt. ordered reports whether a webhook gets the events of a subject one at a time.
	// Errors: store.ErrUnavailable.
	RestorePending(ctx context.Context, backlog Backlog, ordered func(webhook string) bool) error
	// RestoreEnded adds deliveries that have ended. If a delivery exists, the one that ended later
	// is kept. Errors: store.ErrUnavailable.
	RestoreEnded(ctx context.Context, ended []Archived) error
}
