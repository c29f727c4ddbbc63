package order_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

var byName = order.Order{{Field: store.SortText, Param: "name"}, {Field: store.SortCreated, Descending: true}}

func TestPositions(t *testing.T) {
	last := order.Place{Ranks: []order.Rank{{Text: "caf\xc3"}, {Number: -7}}, Created: 7, Type: "Patient", ID: "a"}
	position := byName.Position(&last)
	got, err := byName.Parse(position)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&last, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, other := range map[string]order.Order{
		"shorter":      byName[:1],
		"by another":   {{Field: store.SortText, Param: "family"}, byName[1]},
		"another way":  {byName[0], {Field: store.SortCreated}},
		"of the other": {byName[1], byName[0]},
	} {
		if _, err := other.Parse(position); err == nil {
			t.Errorf("the position is taken by an order that is %s", name)
		}
	}
	if _, err := byName.Parse(append(position[:len(position):len(position)], 0)); err == nil {
		t.Error("a position is taken that goes on")
	}
	for n := range position {
		if _, err := byName.Parse(position[:n]); err == nil {
			t.Errorf("the first %d bytes of a position are taken", n)
		}
	}
}

func TestInMillis(t *testing.T) {
	created := time.Date(2020, 1, 1, 1, 0, 0, 0, time.UTC)
	for of, test := range map[string]struct {
		created int64
		want    bool
	}{
		"a time of the cluster":                  {created.UnixMilli(), true},
		"a number of Postgres":                   {indexrow.RidFloor(created), false},
		"a number of Postgres for an older time": {indexrow.RidFloor(created.AddDate(-1, 0, 0)), false},
	} {
		if got := (&order.Place{Created: test.created}).InMillis(); got != test.want {
			t.Errorf("%s: got %t, want %t", of, got, test.want)
		}
	}
}

func FuzzPosition(f *testing.F) {
	for _, last := range []order.Place{
		{Ranks: []order.Rank{{Text: "caf\xc3"}, {Number: -7}}, Created: 7, Type: "Patient", ID: "a"},
		{Ranks: []order.Rank{{Missing: true}, {}}},
	} {
		f.Add([]byte(byName.Position(&last)))
	}
	f.Fuzz(func(t *testing.T, position []byte) {
		last, err := byName.Parse(position)
		if err != nil || last == nil {
			return
		}
		again, err := byName.Parse(byName.Position(last))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(last, again); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
