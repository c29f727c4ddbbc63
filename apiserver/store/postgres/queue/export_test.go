package queue

import "context"

// JobsPerSlot is the number of jobs that a process fetches for each of its slots.
const JobsPerSlot = jobsPerSlot

// SetFault lets tests interrupt at a point.
func (q *Queue) SetFault(fault func(point string) error) { q.fault = fault }

// StopQueue stops the River queue of a webhook, as if it had not been started.
func (q *Queue) StopQueue(ctx context.Context, site int32, webhook string) error {
	return q.client.Queues().Remove(ctx, name(site, webhook))
}

// Heal starts chains that have no active delivery.
func (q *Queue) Heal(ctx context.Context) error { return q.heal(ctx) }

// Trim deletes what is older than the retention.
func (q *Queue) Trim(ctx context.Context) error { return q.trim(ctx) }

// RelayAll relays the outbox without starting workers.
func (q *Queue) RelayAll(ctx context.Context) error {
	for {
		found, err := q.find(ctx)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, w := range found {
			if err := q.move(ctx, w); err != nil {
				return err
			}
		}
	}
}
