package delivery

import "context"

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
	queries := []Query{
		{Webhook: webhook, Statuses: []Status{Pending}, Count: failuresRead},
		{Webhook: webhook, Statuses: []Status{Failed, Undelivered}, Count: failuresRead},
	}
	if h.Pending > failuresRead {
		queries = append(queries, Query{Webhook: webhook, Statuses: []Status{Pending}, Offset: int(h.Pending) - failuresRead, Count: failuresRead})
	}
	for _, query := range queries {
		found, _, err := log.Deliveries(ctx, query)
		if err != nil {
			return Attempt{}, err
		}
		for _, d := range found {
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
	}
	return last, nil
}
