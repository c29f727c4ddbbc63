package delivery

import "context"

// Archived is a delivery with what another engine needs to continue it.
type Archived struct {
	// Delivery has the Envelope of its event, unless the engine has removed that Envelope.
	Delivery
	// Scheduled is the number of attempts since the retry schedule began.
	Scheduled int
}

// Backlog is the data of a site's deliveries that have not ended.
type Backlog struct {
	// Deliveries are the Pending deliveries, including those that the engine has not created yet for
	// stored events.
	Deliveries []Archived
	// States are the states of the breakers of webhooks, by the id of the webhook.
	States map[string]State
	// Sequence is a number that no sequence of an event of the site exceeds so far.
	Sequence int64
}

// Archive copies the deliveries of a site from one engine to another. No delivery of the site may be
// attempted meanwhile.
type Archive interface {
	// DumpPending returns the Backlog of the site. Errors: store.ErrUnavailable.
	DumpPending(ctx context.Context) (Backlog, error)
	// DumpEnded returns a page of deliveries that have ended, in an order that the engine chooses. The
	// page has at most count deliveries, or all of them if the engine keeps a limited number. A page
	// other than the last one may have fewer or none. after is the next of the previous page, or empty
	// for the first page. next is empty after the last page. Errors: store.ErrUnavailable.
	DumpEnded(ctx context.Context, after string, count int) (found []Archived, next string, err error)
	// RestorePending replaces the pending deliveries of the site. A delivery is due at its
	// NextAttempt, or at once if that is zero. ordered reports whether a webhook gets the events of
	// a subject one at a time. Of the deliveries to such a webhook, only the first of each subject
	// is due. An engine that cannot restore deliveries changes nothing. Errors:
	// store.ErrUnavailable, deliveries.ErrPending (Cluster engine, if there are any to restore).
	RestorePending(ctx context.Context, backlog Backlog, ordered func(webhook string) bool) error
	// RestoreEnded adds deliveries that have ended. If a delivery exists, the one that ended later
	// is kept, but a pending one always stays. The Cluster engine does nothing. Errors:
	// store.ErrUnavailable.
	RestoreEnded(ctx context.Context, ended []Archived) error
}
