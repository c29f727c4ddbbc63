package order_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
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
