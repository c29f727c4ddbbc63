package delivery

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Tail reads the deliveries of a Site in a stable order.
type Tail interface {
	// After returns at most count deliveries of a webhook after a position, the oldest first, and
	// the position to continue from. The deliveries have the Envelopes of their events. Deliveries
	// that are added later come after that position. A client that continues from it therefore
	// misses no delivery of the log and gets none twice. Redelivering does not change the position
	// of a delivery. For the zero Position, After returns no deliveries, and a position before all
	// events accepted from now on.
	//
	// The Envelope of an event is empty if the log has removed it. Errors: store.ErrUnavailable.
	After(ctx context.Context, webhook string, after Position, count int) (found []Delivery, next Position, err error)
}

// Position is a position in the order of a Tail. No delivery has the zero value. Postgres orders by
// time and then sequence, etcd-backed storage by sequence.
type Position struct{ Millis, Sequence int64 }

// Position returns the position of a delivery.
func (d Delivery) Position() Position {
	return Position{Millis: d.Event.Accepted.UnixMilli(), Sequence: d.Event.Sequence}
}

// String returns the text form that ParsePosition parses.
func (p Position) String() string {
	return strconv.FormatInt(p.Millis, 10) + "-" + strconv.FormatInt(p.Sequence, 10)
}

// ParsePosition parses a Position other than the zero value. Errors: store.ErrBadPosition.
func ParsePosition(text string) (Position, error) {
	millis, sequence, _ := strings.Cut(text, "-")
	var p Position
	var err error
	if p.Millis, err = strconv.ParseInt(millis, 10, 64); err == nil {
		p.Sequence, err = strconv.ParseInt(sequence, 10, 64)
	}
	if err != nil || p.Millis < 0 || p.Sequence < 0 || p == (Position{}) {
		return Position{}, fmt.Errorf("%w: a position must be two numbers separated by -", store.ErrBadPosition)
	}
	return p, nil
}
