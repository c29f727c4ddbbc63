package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

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
				t.Error(diff)
			}
			if test.query.ByTime() != test.byTime {
				t.Errorf("by time: %v", !test.byTime)
			}
		})
	}
}
