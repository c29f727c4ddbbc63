package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
)

// worker implements river.Worker. It makes the attempts of jobs.
type worker struct {
	river.WorkerDefaults[attempt]
	queue *Queue
}

const (
	// absentDelay is the time by which a job is postponed if this process does not deliver the events
	// of its site.
	absentDelay = 10 * time.Second
	// openDelay is the time by which a job is postponed that was fetched just before its queue was
	// paused, or that gets no slot within slotTimeout.
	openDelay   = time.Second
	slotTimeout = 5 * time.Second
)

// job is the pending delivery of a River job, with its event.
type job struct {
	webhook  string
	tries    int
	attempts []byte
	chain    *int64
	event    store.AcceptedEvent
}

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, row *river.Job[attempt]) error {
	q := w.queue
	s := q.site(row.Args.Site)
	if s == nil {
		return river.JobSnooze(absentDelay)
	}
	change, release := 0, func() {}
	if row.Queue != probeQueue {
		waiting, cancel := context.WithTimeout(ctx, slotTimeout)
		of, err := q.queues.begin(waiting, row.Queue)
		cancel()
		if err != nil {
			return river.JobSnooze(openDelay)
		}
		release = sync.OnceFunc(func() { q.queues.end(row.Queue, of, change) })
		defer release()
		if q.queues.isOpen(row.Queue) {
			return river.JobSnooze(openDelay)
		}
	}
	loaded, err := q.loader.load(ctx, row)
	if errors.Is(err, pgx.ErrNoRows) {
		// The delivery has another job, because it was redelivered, or none, because it was erased.
		return q.settler.settle(ctx, &result{row: row.JobRow, site: row.Args.Site, delivery: row.Args.Delivery})
	}
	if err != nil {
		return err
	}
	outcome, err := s.sender.Attempt(ctx, loaded.webhook, loaded.event, loaded.tries)
	if err != nil {
		// If Work returned the error, the row of the job would store it, and River would give up
		// after MaxAttempts.
		q.options.Log.WarnContext(ctx, "an attempt of a delivery could not begin; the server will retry", "site", row.Args.Site, "webhook", loaded.webhook, "delivery", row.Args.Delivery, "error", err)
		return river.JobSnooze(errorDelay)
	}
	switch outcome.Attempt.Reason {
	case delivery.ReasonDelivered:
		change = succeeded
	case delivery.ReasonDisabled: // nothing was sent
	default:
		change = failed
	}
	if err := q.fault("attempted"); err != nil {
		return err
	}
	done := &result{row: row.JobRow, site: row.Args.Site, delivery: row.Args.Delivery, job: loaded, outcome: &outcome, tries: loaded.tries, attempts: loaded.attempts}
	if outcome.Attempt.Reason != delivery.ReasonDisabled {
		done.tries++
		if done.attempts, err = outbox.AddAttempt(loaded.attempts, outcome.Attempt); err != nil {
			return err
		}
	}
	if change == succeeded {
		release() // a failure occupies its slot until it is stored, because the breaker may open
	}
	return q.settler.settle(ctx, done)
}
