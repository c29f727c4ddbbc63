package delivery

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

// deliveryLog is a log of deliveries in memory, the newest first. If reach is not 0, pages after as many deliveries
// are empty.
type deliveryLog struct {
	Log
	all   []Delivery
	reach int
}

func (l deliveryLog) Deliveries(_ context.Context, query Query) ([]Delivery, int64, error) {
	var found []Delivery
	for _, d := range l.all {
		at := d.Event.Accepted
		if d.Webhook == query.Webhook && slices.Contains(query.Statuses, d.Status) && !at.Before(query.From) && (query.To.IsZero() || at.Before(query.To)) {
			found = append(found, d)
		}
	}
	if l.reach > 0 {
		found = found[:min(len(found), l.reach)]
	}
	from := min(query.Offset, len(found))
	return found[from:min(len(found), from+query.Count)], int64(len(found)), nil
}

func TestLastFailures(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2031, 3, 1, 9, minute, 0, 0, time.UTC) }
	tried := func(status Status, attempts ...Attempt) Delivery {
		return Delivery{Webhook: "w", Status: status, Attempts: attempts}
	}
	untried := slices.Repeat([]Delivery{tried(Pending)}, 50)
	timeout, refused := Attempt{At: at(2), Reason: ReasonTimeout, Message: "slow"}, Attempt{At: at(3), Reason: ReasonCertificate, Message: "no TLS"}
	for name, test := range map[string]struct {
		log  []Delivery
		want Reason
	}{
		"of a pending delivery":             {[]Delivery{tried(Pending, timeout, refused)}, ReasonCertificate},
		"of the delivery that failed":       {[]Delivery{tried(Pending, timeout), tried(Failed, refused)}, ReasonCertificate},
		"of the oldest pending":             {slices.Concat(untried, []Delivery{tried(Pending, refused)}), ReasonCertificate},
		"not one before the failures began": {[]Delivery{tried(Failed, Attempt{At: at(0), Reason: ReasonStatus})}, ""},
		"not a success":                     {[]Delivery{tried(Pending, timeout, Attempt{At: at(4), Reason: ReasonDelivered})}, ReasonTimeout},
		"none":                              {untried, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var pending int64
			for _, d := range test.log {
				if d.Status == Pending {
					pending++
				}
			}
			health := map[string]Health{"w": {Pending: pending, FailingSince: at(1)}, "well": {LastSuccess: at(1)}}
			if err := AddLastFailures(t.Context(), deliveryLog{all: test.log}, health); err != nil {
				t.Fatal(err)
			}
			if got := health["w"].LastFailure.Reason; got != test.want || health["well"].LastFailure.Reason != "" {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestLastFailureOfManyPending finds the last failure in the oldest pending deliveries when the log counts no
// further than the newest ones, as that of Postgres does.
func TestLastFailureOfManyPending(t *testing.T) {
	since := time.Date(2031, 3, 1, 9, 0, 0, 0, time.UTC)
	accepted := func(second, number int, attempts ...Attempt) []Delivery {
		d := Delivery{Webhook: "w", Status: Pending, Attempts: attempts}
		d.Event.Accepted = since.Add(time.Duration(second) * time.Second)
		return slices.Repeat([]Delivery{d}, number)
	}
	refused := Attempt{At: since.Add(time.Minute), Reason: ReasonCertificate, Message: "no TLS"}
	for _, sameTime := range []int{0, 3 * failuresRead} { // untried deliveries of the time of the oldest one
		log := deliveryLog{all: slices.Concat(accepted(1, 10*failuresRead), accepted(0, sameTime), accepted(0, 1, refused)), reach: 5 * failuresRead}
		health := map[string]Health{"w": {Pending: int64(len(log.all)), OldestPending: since, FailingSince: since}}
		if err := AddLastFailures(t.Context(), log, health); err != nil {
			t.Fatal(err)
		}
		if got := health["w"].LastFailure.Reason; got != ReasonCertificate {
			t.Errorf("%d of the same time: got %q, want %q", sameTime, got, ReasonCertificate)
		}
	}
}

// TestLastFailureOfRestrictedEvent shows that the health of a webhook does not quote what its receiver sent about
// a restricted event.
func TestLastFailureOfRestrictedEvent(t *testing.T) {
	since := time.Date(2031, 3, 1, 9, 0, 0, 0, time.UTC)
	failed := Attempt{At: since.Add(time.Minute), Reason: ReasonConnection, Message: "the connection failed: malformed HTTP response \"vip\""}
	for _, restricted := range []bool{false, true} {
		d := Delivery{Webhook: "w", Status: Failed, Attempts: []Attempt{failed}}
		d.Event.Restricted = restricted
		health := map[string]Health{"w": {FailingSince: since}}
		if err := AddLastFailures(t.Context(), deliveryLog{all: []Delivery{d}}, health); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(health["w"].LastFailure.Message, "vip"); got == restricted {
			t.Errorf("restricted %t: %q", restricted, health["w"].LastFailure.Message)
		}
	}
}
