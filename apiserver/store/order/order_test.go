package order_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
)

func at(created int64, ranks ...order.Rank) order.Place {
	return order.Place{Ranks: ranks, Created: created, Type: "Patient", ID: "a"}
}

func TestCompare(t *testing.T) {
	missing := order.Rank{Missing: true}
	text := func(s string) order.Rank { return order.Rank{Text: s} }
	ascending, descending := store.Sort{Field: store.SortText, Param: "p"}, store.Sort{Field: store.SortText, Param: "p", Descending: true}
	for name, test := range map[string]struct {
		order order.Order
		want  []order.Place
	}{
		"ascending":             {order.Order{ascending}, []order.Place{at(2, text("a")), at(1, text("b"))}},
		"descending":            {order.Order{descending}, []order.Place{at(1, text("b")), at(2, text("a"))}},
		"missing comes last":    {order.Order{ascending}, []order.Place{at(2, text("z")), at(1, missing)}},
		"missing, descending":   {order.Order{descending}, []order.Place{at(2, text("a")), at(1, missing)}},
		"both missing":          {order.Order{ascending}, []order.Place{at(1, missing), at(2, missing)}},
		"equal":                 {order.Order{ascending}, []order.Place{at(1, text("a")), at(2, text("a"))}},
		"equal, descending":     {order.Order{descending}, []order.Place{at(2, text("a")), at(1, text("a"))}},
		"the second part":       {order.Order{ascending, descending}, []order.Place{at(1, text("a"), text("y")), at(2, text("a"), text("x"))}},
		"the last part directs": {order.Order{ascending, descending}, []order.Place{at(2, text("a"), missing), at(1, text("a"), missing)}},
	} {
		t.Run(name, func(t *testing.T) {
			got := slices.Clone(test.want)
			slices.Reverse(got)
			slices.SortFunc(got, func(a, b order.Place) int { return test.order.Compare(&a, &b) })
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
