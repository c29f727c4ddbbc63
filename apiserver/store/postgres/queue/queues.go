package queue

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
)

const (
	// probeQueue is the River queue of probes: the single attempts of webhooks with an open breaker.
	// The queue of such a webhook is paused.
	probeQueue = "probes"
	probePoll  = 100 * time.Millisecond
	// queuesPeriod is the time between two runs of keepQueues. A job waits at most this long if
	// another process inserted it into a queue that this process does not poll yet.
	queuesPeriod = 250 * time.Millisecond
	// stalledAfter is the time without an attempt after which a queue with due jobs is removed and added
	// again. River may have failed to start it without an error.
	stalledAfter = 5 * time.Second
	// idleAfter is the time without an attempt or a new job after which a queue is no longer polled.
	idleAfter = time.Minute
	// jobsPerSlot is the number of jobs of a webhook that a process fetches for each slot. The jobs
	// without a slot wait for a slot, or for the commit of their result. With a lower number, each
	// statement is for fewer jobs. With a higher number, more deliveries wait for RescueAfter when a
	// process dies.
	jobsPerSlot = 4
	// maxWanted is the maximum number of queues that wait to be added. At the limit, the next run of
	// keepQueues adds further queues.
	maxWanted = 1000
	// removeTimeout is the maximum duration of removing a queue. At the limit, the removal is tried
	// again later.
	removeTimeout = time.Second
)

// queues are the River queues that this process polls. Each webhook has its own queue, so that its
// jobs do not wait for those of another webhook. attempts limits the concurrent attempts of the
// webhook.
type queues struct {
	client  *river.Client[pgx.Tx]
	workers int

	// wanted are the queues that have jobs and that must be added to River.
	wanted chan string
	// changing is held while River adds or removes a queue, which may wait for the database.
	changing sync.Mutex

	mu sync.Mutex
	// used maps the queues that were added to River to the time at which they were last wanted or had
	// an attempt.
	used map[string]time.Time
	// worked maps the queues in used to the time at which they were added or had their last attempt.
	worked map[string]time.Time
	// ending are the queues that are being removed from River.
	ending map[string]bool
	// attempts maps used queues to their attempts.
	attempts map[string]*attempts
	// open are the queues of webhooks whose breaker is open.
	open map[string]bool
}

func newQueues(client *river.Client[pgx.Tx], options Options) *queues {
	return &queues{client: client, workers: options.Workers, wanted: make(chan string, maxWanted), used: map[string]time.Time{}, worked: map[string]time.Time{}, ending: map[string]bool{}, attempts: map[string]*attempts{}, open: map[string]bool{}}
}

// want requests that River polls the queue of a webhook that has jobs, unless the breaker of the
// webhook is open. It does not wait until the queue is added to River, so that jobs of other
// webhooks are not delayed.
func (q *queues) want(queue string) {
	if !q.use(queue) {
		return
	}
	select {
	case q.wanted <- queue:
	default:
	}
}

// addWanted adds the wanted queues until ctx ends.
func (q *queues) addWanted(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case queue := <-q.wanted:
			q.add(queue)
		}
	}
}

// add adds a queue to River, which then polls it.
func (q *queues) add(queue string) {
	q.changing.Lock()
	defer q.changing.Unlock()
	q.mu.Lock()
	ending := q.ending[queue]
	q.mu.Unlock()
	if ending {
		return // keepQueues tries again
	}
	err := q.client.Queues().Add(queue, river.QueueConfig{MaxWorkers: q.workers * jobsPerSlot})
	if already := new(river.QueueAlreadyAddedError); err == nil || errors.As(err, &already) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.used[queue], q.worked[queue] = time.Now(), time.Now()
		return
	}
	// River has the queue although it could not start it, and would not start it again.
	_ = q.remove(context.Background(), queue) // after a failure, keepQueues restarts the queue
}

// remove removes a queue from River. The caller must hold changing.
func (q *queues) remove(ctx context.Context, queue string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	err := q.client.Queues().Remove(ctx, queue)
	if unknown := new(river.QueueNotFoundError); errors.As(err, &unknown) {
		return nil
	}
	return err
}

// restart removes a queue from River and adds it again.
func (q *queues) restart(ctx context.Context, queue string) error {
	q.changing.Lock()
	err := q.remove(ctx, queue)
	q.changing.Unlock()
	if err == nil {
		q.add(queue)
	}
	return err
}

// isStalled reports whether a queue that was added has had no attempt for stalledAfter. The caller
// must hold mu.
func (q *queues) isStalled(queue string) bool {
	of := q.attempts[queue]
	return (of == nil || of.running == 0) && time.Since(q.worked[queue]) >= stalledAfter
}

// use marks a queue that was added to River as used now. For any other queue, it reports whether the
// queue must be added, which is so unless the breaker of the webhook is open.
func (q *queues) use(queue string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, there := q.used[queue]; there {
		q.used[queue] = time.Now()
		return false
	}
	return !q.open[queue]
}

// removeIdle removes the idle queues from River. Before it removes a queue, River waits for attempts of
// the queue that are about to begin.
func (q *queues) removeIdle(ctx context.Context) error {
	q.changing.Lock()
	defer q.changing.Unlock()
	for _, queue := range q.idle() {
		if err := q.remove(ctx, queue); err != nil {
			return err
		}
		q.mu.Lock()
		delete(q.ending, queue)
		q.mu.Unlock()
	}
	return nil
}

// idle returns the queues that have had neither an attempt nor a new job for idleAfter, and those whose
// removal failed before. It moves them from used to ending.
func (q *queues) idle() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for queue, at := range q.used {
		if of := q.attempts[queue]; (of == nil || of.running == 0) && time.Since(at) >= idleAfter {
			delete(q.used, queue)
			delete(q.worked, queue)
			delete(q.attempts, queue)
			q.ending[queue] = true
		}
	}
	return slices.Collect(maps.Keys(q.ending))
}

func (q *queues) isOpen(queue string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open[queue]
}

// noteStates updates open by the states of webhooks. It ignores webhooks without a state.
func (q *queues) noteStates(all states) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, state := range all {
		if state != nil {
			q.setOpen(name(key.site, key.webhook), state.isOpen())
		}
	}
}

func (q *queues) setOpen(queue string, open bool) {
	if open {
		q.open[queue] = true
	} else {
		delete(q.open, queue)
	}
}

// keepQueues adds the queues that have jobs to River, restarts those that are stalled, and removes those
// that are idle. It also updates open.
func (q *Queue) keepQueues(ctx context.Context) error {
	const find = `SELECT w.site, w.webhook, w.open_until > 0 FROM webhook w LEFT JOIN relayed r ON r.site = w.site AND r.webhook = w.webhook
		WHERE w.site = ANY($1::int4[]) AND (w.pending + COALESCE(r.deliveries, 0) > 0 OR w.open_until > 0)`
	rows, err := q.pool.Query(ctx, find, q.numbers())
	if err != nil {
		return err
	}
	var names []string
	var stalled []bool
	q.queues.mu.Lock()
	var key webhookKey
	var open bool
	_, err = pgx.ForEachRow(rows, []any{&key.site, &key.webhook, &open}, func() error {
		queue := name(key.site, key.webhook)
		q.queues.setOpen(queue, open)
		if _, there := q.queues.used[queue]; !open && (!there || q.queues.isStalled(queue)) {
			names, stalled = append(names, queue), append(stalled, there)
		}
		return nil
	})
	q.queues.mu.Unlock()
	if err != nil {
		return err
	}
	if len(names) > 0 {
		const busy = `SELECT q.n FROM unnest($1::text[]) WITH ORDINALITY q(queue, n)
			WHERE EXISTS (SELECT FROM river_job j WHERE j.state = 'available' AND j.queue = q.queue AND j.priority = 1 AND j.scheduled_at <= now())`
		rows, err := q.pool.Query(ctx, busy, names)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		for _, n := range found {
			if !stalled[n-1] {
				q.queues.add(names[n-1])
			} else if err := q.queues.restart(ctx, names[n-1]); err != nil {
				return err
			}
		}
	}
	return q.queues.removeIdle(ctx)
}
