package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

func claiming(id string, n int, claims ...store.Claim) store.Op {
	op := put(id, body(n))
	op.Claims = append([]store.Claim{}, claims...) // without claims, the record releases those it holds
	return op
}

// hours returns a claim on the interval [from, until) of one day.
func hours(line string, from, until int) store.Claim {
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	at := func(h int) time.Time { return day.Add(time.Duration(h) * time.Hour) }
	return store.Claim{Line: line, From: at(from), Until: at(until)}
}

func refusedBy(t *testing.T, s store.Store, op store.Op, holder string) {
	t.Helper()
	_, err := s.Write(t.Context(), []store.Op{op})
	var refused *store.ClaimError
	if !errors.As(err, &refused) {
		t.Fatalf("write %v with claims %v: got %v, want a ClaimError", op.Key, op.Claims, err)
	}
	same(t, "holder", refused.Holder, key(holder))
}

func testNameClaims(t *testing.T, open Open) {
	s, other := open(t)
	name := store.Claim{Line: "identifier=https://example.org|1"}
	first := write(t, s, claiming("one", 1, name))
	same(t, "claims", first.Record.Claims, []store.Claim{name})
	same(t, "claims as read", get(t, other, "one").Claims, []store.Claim{name})
	same(t, "unchanged", write(t, s, claiming("one", 1, name)).Outcome, store.Unchanged)
	refusedBy(t, other, claiming("two", 2, name), "one")
	if _, err := s.Get(t.Context(), key("two")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a refused create left a record: %v", err)
	}
	write(t, s, claiming("two", 2, store.Claim{Line: "another"}))
	write(t, s, claiming("one", 2, name)) // an update keeps the claims that it lists
	refusedBy(t, s, claiming("two", 3, name), "one")
	same(t, "a refused update changes nothing", get(t, s, "two").Version, int64(1))
	write(t, s, del("one"))
	write(t, other, claiming("two", 3, name))
	write(t, other, store.Op{Kind: store.Purge, Key: key("two")})
	write(t, s, claiming("one", 3, name))
	write(t, s, put("one", body(4))) // a put with nil Claims keeps them
	refusedBy(t, other, claiming("three", 3, name), "one")
	same(t, "unchanged but for claims", write(t, s, claiming("one", 4)).Outcome, store.Updated)
	write(t, other, claiming("three", 3, name))
}

func testIntervalClaims(t *testing.T, open Open) {
	s, other := open(t)
	write(t, s, claiming("nine", 1, hours("room", 9, 10)))
	write(t, other, claiming("ten", 1, hours("room", 10, 11))) // half-open: no overlap
	write(t, s, claiming("elsewhere", 1, hours("another room", 9, 11)))
	for _, c := range []store.Claim{hours("room", 8, 12), hours("room", 9, 10), {Line: "room", From: hours("", 0, 0).From.Add(9*time.Hour + 59*time.Minute)}} {
		refusedBy(t, other, claiming("late", 1, c), "nine")
	}
	refusedBy(t, s, claiming("late", 1, hours("room", 10, 12)), "ten")
	refusedBy(t, s, claiming("late", 1, store.Claim{Line: "room", Until: hours("", 0, 10).Until}), "nine")
	write(t, s, claiming("late", 1, hours("room", 11, 12), hours("another room", 11, 12)))
	refusedBy(t, s, claiming("both", 1, hours("third room", 9, 10), hours("room", 9, 10)), "nine")
	write(t, s, claiming("both", 1, hours("third room", 9, 10))) // the refused write left no claim
}

func testClaimExpiry(t *testing.T, open Open) {
	s, other := open(t)
	var hold, kept store.Claim
	for life, inTime := time.Second, false; !inTime; life *= 2 { // a slow machine needs a later expiry
		line, holder, late := "room "+life.String(), "hold-"+life.String(), "late-"+life.String()
		hold = hours(line, 9, 10)
		hold.Expires = time.Now().Add(life).UTC().Truncate(time.Millisecond)
		write(t, s, claiming(holder, 1, hold))
		_, err := other.Write(t.Context(), []store.Op{claiming(late, 1, hours(line, 9, 10))})
		if !time.Now().Before(hold.Expires) {
			continue
		}
		if refused := new(store.ClaimError); !errors.As(err, &refused) || refused.Holder != key(holder) {
			t.Fatalf("a claim that another record holds: got %v, want a ClaimError that names %s", err, holder)
		}
		kept = hold
		kept.Expires = time.Time{}
		write(t, s, claiming(holder, 2, kept))
		if inTime = time.Now().Before(hold.Expires); !inTime {
			continue
		}
		eventually(t, "the first expiry passes", func() bool { return time.Now().After(hold.Expires) })
		refusedBy(t, other, claiming(late, 1, hours(line, 9, 10)), holder)
	}

	hold = hours("second room", 9, 10)
	hold.Expires = time.Now().Add(500 * time.Millisecond).UTC().Truncate(time.Millisecond)
	write(t, s, claiming("brief", 1, hold))
	eventually(t, "the hold expires", func() bool { return time.Now().After(hold.Expires) })
	write(t, other, claiming("late", 1, hours("second room", 9, 10)))
	kept = hold
	kept.Expires = time.Time{}
	refusedBy(t, s, claiming("brief", 2, kept), "late")
}

func testClaimMove(t *testing.T, open Open) {
	s, other := open(t)
	write(t, s, claiming("moving", 1, hours("room", 9, 10)))
	write(t, s, claiming("wall", 1, hours("room", 12, 13)))
	refusedBy(t, other, claiming("moving", 2, hours("room", 11, 13)), "wall")
	refusedBy(t, s, claiming("late", 1, hours("room", 9, 10)), "moving") // the refused move left the old claim
	write(t, other, claiming("moving", 2, hours("room", 9, 11)))         // overlaps its own old interval
	write(t, other, claiming("moving", 3, hours("room", 10, 12)))
	write(t, s, claiming("late", 1, hours("room", 9, 10)))
	refusedBy(t, s, claiming("later", 1, hours("room", 11, 12)), "moving")
}
