package delivery

import (
	"context"
	"time"
)

// failuresRead is the number of deliveries per query in which AddLastFailures looks for attempts.
const failuresRead = 20

// AddLastFailures sets LastFailure in the health of each failing webhook. It reads the newest and the
// oldest pending deliveries and the newest failed deliveries. Pending deliveries in between may have no
// attempt, because a breaker that opened stops attempts. LastFailure stays zero if none of the
// deliveries has an attempt after FailingSince.
func AddLastFailures(ctx context.Context, log Log, health map[string]Health) error {
	for webhook, h := range health {
		if h.FailingSince.IsZero() {
			continue
		}
		var err error
		if h.LastFailure, err = lastFailure(ctx, log, webhook, h); err != nil {
			return err
		}
		health[webhook] = h
	}
	return nil
}

func lastFailure(ctx context.Context, log Log, webhook string, h Health) (last Attempt, err error) {
	newest := Query{Webhook: webhook, Statuses: []Status{Pending}, Count: failuresRead}
	ended := Query{Webhook: webhook, Statuses: []Status{Failed, Undelivered}, Count: failuresRead}
	var read []Delivery
	for _, query := range []Query{newest, ended} {
		found, _, err := log.Deliveries(ctx, query)
		if err != nil {
			return Attempt{}, err
		}
		read = append(read, found...)
	}
	if h.Pending > failuresRead {
		oldest, err := oldestPending(ctx, log, webhook, h)
		if err != nil {
			return Attempt{}, err
		}
		read = append(read, oldest...)
	}
	for _, d := range read {
		for _, attempt := range d.Attempts {
			failed := attempt.Reason != ReasonDelivered && attempt.Reason != ReasonDisabled
			if failed && !attempt.At.Before(h.FailingSince) && !attempt.At.Before(last.At) {
				last = attempt
				if d.Event.Restricted {
					last.Message = attempt.OwnMessage() // all who may read the Webhook see its status
				}
			}
		}
	}
	return last, nil
}

// oldestPending returns up to failuresRead of the oldest pending deliveries of a webhook.
func oldestPending(ctx context.Context, log Log, webhook string, h Health) ([]Delivery, error) {
	query := Query{Webhook: webhook, Statuses: []Status{Pending}, Offset: int(h.Pending) - failuresRead, Count: failuresRead}
	found, _, err := log.Deliveries(ctx, query)
	if err != nil || len(found) > 0 {
		return found, err
	}
	// The offset is beyond the deliveries that Log.Deliveries counts, so they are selected by time.
	query.From, query.To, query.Offset = h.OldestPending, h.OldestPending.Add(time.Millisecond), 0
	found, total, err := log.Deliveries(ctx, query)
	if err != nil || total <= failuresRead {
		return found, err
	}
	query.Offset = int(total) - failuresRead
	found, _, err = log.Deliveries(ctx, query)
	return found, err
}
