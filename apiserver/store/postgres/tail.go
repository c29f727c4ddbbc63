package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/delivery"
)

// Tail returns a reader that follows the deliveries of the site. Package queue writes the
// deliveries.
func (s *Store) Tail() delivery.Tail { return deliveryLog{s} }

// maxWaitingEvents is the number of events in the outbox of the site above which a tail returns no
// deliveries, because finding the oldest of these events would take too long.
const maxWaitingEvents = 1000

// After implements delivery.Tail. Writes may commit in another order than that of their sequences
// or times. So After returns a delivery only when the time of its event is before the watermark
// (clock.go) and before the times of all events in the outbox. From then on, no event with an
// earlier time can appear.
func (s deliveryLog) After(ctx context.Context, webhook string, after delivery.Position, count int) ([]delivery.Delivery, delivery.Position, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	watermark, err := s.oldestOpenWrite(ctx)
	if err != nil {
		return nil, after, storeError("find the oldest write in progress", err)
	}
	if after == (delivery.Position{}) {
		return nil, delivery.Position{Millis: watermark}, nil
	}
	const waiting = `SELECT count(*), COALESCE(min(o.at), $3) FROM (SELECT at FROM outbox WHERE site = $1 ORDER BY seq LIMIT $2) o`
	var events, oldest int64
	if err := s.pool.QueryRow(ctx, waiting, s.site, maxWaitingEvents+1, watermark).Scan(&events, &oldest); err != nil {
		return nil, after, storeError("find the oldest event in the outbox", err)
	}
	watermark = min(watermark, oldest)
	if events > maxWaitingEvents || watermark <= after.Millis {
		return nil, after, nil
	}
	const find = `SELECT ` + deliveryColumns + `, e.envelope FROM (
			SELECT k.id, k.at, k.seq FROM unnest($3::int2[]) s(status) CROSS JOIN LATERAL (
				SELECT d.id, d.at, d.seq FROM delivery d WHERE d.site = $1 AND d.webhook = $2 AND d.status = s.status AND (d.at, d.seq) > ($4, $5) AND d.at < $6
				ORDER BY d.at, d.seq LIMIT $7) k
			ORDER BY k.at, k.seq LIMIT $7) k
		CROSS JOIN LATERAL (SELECT * FROM delivery WHERE site = $1 AND id = k.id OFFSET 0) d
		CROSS JOIN LATERAL (SELECT * FROM event WHERE site = $1 AND seq = k.seq OFFSET 0) e ORDER BY k.at, k.seq`
	rows, err := s.pool.Query(ctx, find, s.site, webhook, statusNumbers(allStatuses), after.Millis, after.Sequence, watermark, count)
	if err != nil {
		return nil, after, storeError("follow deliveries", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (delivery.Delivery, error) {
		var envelope []byte
		d, err := scanDelivery(row, &envelope)
		d.Event.Envelope = envelope
		return d, err
	})
	if err != nil {
		return nil, after, storeError("follow deliveries", err)
	}
	if len(found) == count {
		return found, found[count-1].Position(), nil
	}
	return found, delivery.Position{Millis: watermark}, nil
}
