package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

// at returns the time n seconds after 1970. at(0) is the zero time, which is an infinite bound.
func at(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

func between(from, until int64) store.TimeRange {
	return store.TimeRange{From: at(from), Until: at(until)}
}

func TestTimeRangeIntersection(t *testing.T) {
	for name, test := range map[string]struct {
		a, b, want store.TimeRange
		empty      bool
	}{
		"overlapping":      {between(1, 5), between(3, 7), between(3, 5), false},
		"one inside other": {between(1, 7), between(3, 5), between(3, 5), false},
		"two open ends":    {between(3, 0), between(0, 5), between(3, 5), false},
		"same open end":    {between(3, 0), between(5, 0), between(5, 0), false},
		"everything":       {between(0, 0), between(3, 5), between(3, 5), false},
		"both everything":  {between(0, 0), between(0, 0), between(0, 0), false},
		"one after":        {between(1, 3), between(5, 7), between(5, 3), true},
		"adjacent":         {between(1, 3), between(3, 5), between(3, 3), true},
	} {
		for _, got := range []store.TimeRange{test.a.Intersection(test.b), test.b.Intersection(test.a)} {
			if diff := cmp.Diff(test.want, got); diff != "" || got.Empty() != test.empty {
				t.Errorf("%s: Empty() = %t, want %t, and the range (-want +got):\n%s", name, got.Empty(), test.empty, diff)
			}
		}
	}
}

// TestBefore shows that Before narrows an UpdatedIn that the query has already.
func TestBefore(t *testing.T) {
	id := store.IDIn{"a"}
	for name, test := range map[string]struct{ where, want store.Condition }{
		"no condition":      {nil, store.UpdatedIn(between(0, 5))},
		"another":           {id, store.All{id, store.UpdatedIn(between(0, 5))}},
		"several":           {store.All{id, id}, store.All{id, id, store.UpdatedIn(between(0, 5))}},
		"a range":           {store.UpdatedIn(between(1, 0)), store.UpdatedIn(between(1, 5))},
		"a range among all": {store.All{id, store.UpdatedIn(between(1, 9))}, store.All{id, store.UpdatedIn(between(1, 5))}},
		"ranges":            {store.Any{store.UpdatedIn(between(1, 2))}, store.All{store.Any{store.UpdatedIn(between(1, 2))}, store.UpdatedIn(between(0, 5))}},
	} {
		query := store.Query{Where: test.where}
		if diff := cmp.Diff(test.want, query.Before(at(5)).Where); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestConditionsByType(t *testing.T) {
	all, own := store.IDIn{"a"}, store.UpdatedIn{}
	tests := map[string]struct {
		query  store.Query
		want   store.Condition
		byTime bool
	}{
		"none":               {query: store.Query{Types: []string{"Patient"}}},
		"for all":            {query: store.Query{Types: []string{"Patient"}, Where: all}, want: all},
		"for the type":       {query: store.Query{Types: []string{"Patient"}, ByType: map[string]store.Condition{"Patient": own}}, want: own, byTime: true},
		"for both":           {query: store.Query{Types: []string{"Patient"}, Where: all, ByType: map[string]store.Condition{"Patient": own}}, want: store.All{own, all}, byTime: true},
		"for another type":   {query: store.Query{Types: []string{"Patient"}, Where: all, ByType: map[string]store.Condition{"Group": own}}, want: all},
		"for one of several": {query: store.Query{Types: []string{"Patient", "Group"}, ByType: map[string]store.Condition{"Group": own}}, byTime: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.query.WhereOf("Patient")); diff != "" {
				t.Errorf("WhereOf (-want +got):\n%s", diff)
			}
			if test.query.ByTime() != test.byTime {
				t.Errorf("ByTime() = %t, want %t", !test.byTime, test.byTime)
			}
		})
	}
}
