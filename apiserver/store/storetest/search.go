package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
)

var sorts = []store.Sort{
	{Field: store.SortCreated},
	{Field: store.SortCreated, Descending: true},
	{Field: store.SortUpdated},
	{Field: store.SortUpdated, Descending: true},
	{Field: store.SortID},
	{Field: store.SortID, Descending: true},
}

// populate makes records by random creates, updates, deletes and purges and
// returns those that live.
func populate(t *testing.T, s store.Store, writes int) []store.Record {
	t.Helper()
	rnd := random()
	live := map[string]store.Record{}
	for i := range writes {
		id := fmt.Sprintf("P-%d", rnd.IntN(writes/3))
		folded := strings.ToLower(id)
		switch rnd.IntN(8) {
		case 0:
			write(t, s, del(id))
			delete(live, folded)
		case 1:
			write(t, s, store.Op{Kind: store.Purge, Key: key(id)})
			delete(live, folded)
		default:
			live[folded] = write(t, s, put(id, body(i))).Record
		}
	}
	write(t, s, store.Op{Kind: store.Put, Key: store.Key{Type: "Person", ID: "p-1"}, Method: store.MethodPut, Body: body(0)})
	all := make([]store.Record, 0, len(live))
	for _, r := range live {
		all = append(all, r)
	}
	return all
}

// naive is the obviously right answer.
func naive(all []store.Record, q store.Query) []string {
	matching := slices.DeleteFunc(slices.Clone(all), func(r store.Record) bool { return !naiveMatch(r, q) })
	slices.SortFunc(matching, func(a, b store.Record) int {
		order := 0
		switch q.Sort.Field {
		case store.SortCreated:
			order = a.Created.Compare(b.Created)
		case store.SortUpdated:
			order = a.Updated.Compare(b.Updated)
		case store.SortID:
		}
		if order == 0 {
			order = strings.Compare(strings.ToLower(a.Key.ID), strings.ToLower(b.Key.ID))
		}
		if q.Sort.Descending {
			return -order
		}
		return order
	})
	ids := []string{}
	for _, r := range matching {
		ids = append(ids, r.Key.ID)
	}
	return ids
}

func naiveMatch(r store.Record, q store.Query) bool {
	if q.IDs != nil && !slices.ContainsFunc(q.IDs, func(id string) bool { return strings.EqualFold(id, r.Key.ID) }) {
		return false
	}
	for _, anyOf := range q.Updated {
		hit := false
		for _, within := range anyOf {
			after := within.From.IsZero() || r.Updated.Compare(within.From) >= 0
			before := within.Until.IsZero() || r.Updated.Compare(within.Until) < 0
			hit = hit || after && before
		}
		if !hit {
			return false
		}
	}
	return true
}

func testSearchPages(t *testing.T, open Open) {
	s, _ := open(t)
	all := populate(t, s, 150)
	for _, sort := range sorts {
		for _, count := range []int{1, 2, 7, 1000} {
			q := store.Query{Type: patient, Sort: sort, Count: count}
			same(t, fmt.Sprintf("%+v", q), walk(t, s, q), naive(all, q))
		}
	}
	same(t, "another type", walk(t, s, store.Query{Type: "Person", Count: 10}), []string{"p-1"})
	same(t, "a type without records", walk(t, s, store.Query{Type: "Group", Count: 10}), []string{})
}

func testSearchConditions(t *testing.T, open Open) {
	s, _ := open(t)
	all := populate(t, s, 100)
	rnd := random()
	for range 200 {
		q := store.Query{Type: patient, Sort: sorts[rnd.IntN(len(sorts))], Count: 1 + rnd.IntN(9)}
		if rnd.IntN(2) == 0 {
			q.IDs = []string{}
			for range rnd.IntN(30) {
				q.IDs = append(q.IDs, fmt.Sprintf([]string{"P-%d", "p-%d", "none-%d"}[rnd.IntN(3)], rnd.IntN(40)))
			}
		}
		for range rnd.IntN(3) {
			var anyOf []store.TimeRange
			for range 1 + rnd.IntN(2) {
				r := store.TimeRange{From: all[rnd.IntN(len(all))].Updated, Until: all[rnd.IntN(len(all))].Updated}
				if rnd.IntN(3) == 0 {
					r.From = r.From.AddDate(-9999, 0, 0)
				}
				anyOf = append(anyOf, r)
			}
			q.Updated = append(q.Updated, anyOf)
		}
		same(t, fmt.Sprintf("%+v", q), walk(t, s, q), naive(all, q))
	}
}

func testSearchTotals(t *testing.T, open Open) {
	s, _ := open(t)
	for i := range 12 {
		write(t, s, put(fmt.Sprint(i), body(i)))
	}
	q := store.Query{Type: patient, Count: 5}
	first := search(t, s, q)
	same(t, "total on the first page", first.Total, int64(12))
	q.Total = store.TotalAccurate
	same(t, "accurate total", search(t, s, q).Total, int64(12))
	q.After = first.Next
	same(t, "accurate total on a later page", search(t, s, q).Total, int64(12))
	q.Count, q.After = 0, nil
	counted := search(t, s, q)
	same(t, "total alone", []any{counted.Total, len(counted.Records), counted.Next == nil}, []any{int64(12), 0, true})
	q = store.Query{Type: patient, Count: 5, Total: store.TotalNone}
	same(t, "no total", search(t, s, q).Total, store.UnknownTotal)
	q.IDs, q.Total = []string{"3", "4", "nobody"}, store.TotalAccurate
	same(t, "total of a condition", search(t, s, q).Total, int64(2))
}

// testSearchTokens compares random conditions on random tokens with the naive answer.
func testSearchTokens(t *testing.T, open Open) {
	s, _ := open(t)
	rnd := random()
	token := func() store.Token {
		return store.Token{System: []string{"", "s1", "s2"}[rnd.IntN(3)], Code: []string{"a", "b", "c", "A"}[rnd.IntN(4)]}
	}
	content := map[string]map[string][]store.Token{}
	for i := range 60 {
		id := fmt.Sprint(rnd.IntN(40))
		tokens := map[string][]store.Token{}
		for _, param := range []string{"identifier", "code"} {
			for range rnd.IntN(3) {
				tokens[param] = append(tokens[param], token())
			}
		}
		encoded, err := json.Marshal(map[string]any{"resourceType": patient, "tokens": tokens, "n": i})
		if err != nil {
			t.Fatal(err)
		}
		write(t, s, put(id, store.Body{JSON: encoded}))
		content[id] = tokens
		if i%7 == 0 {
			write(t, s, del(id))
			delete(content, id)
		}
	}
	for range 300 {
		q := store.Query{Type: patient, Sort: store.Sort{Field: store.SortID}, Count: 1 + rnd.IntN(9)}
		for range 1 + rnd.IntN(2) {
			condition := store.TokenCondition{Param: []string{"identifier", "code", "other"}[rnd.IntN(3)]}
			for range 1 + rnd.IntN(2) {
				value := token()
				match := store.TokenMatch{System: &value.System, Code: &value.Code}
				switch {
				case rnd.IntN(3) == 0:
					match.System = nil
				case value.System != "" && rnd.IntN(3) == 0:
					match.Code = nil
				}
				condition.AnyOf = append(condition.AnyOf, match)
			}
			q.Tokens = append(q.Tokens, condition)
		}
		want := []string{}
		for id, tokens := range content {
			if !slices.ContainsFunc(q.Tokens, func(c store.TokenCondition) bool { return !naiveToken(tokens[c.Param], c) }) {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		same(t, fmt.Sprintf("%+v", q.Tokens), walk(t, s, q), want)
	}
}

func naiveToken(tokens []store.Token, condition store.TokenCondition) bool {
	for _, token := range tokens {
		for _, match := range condition.AnyOf {
			system := match.System == nil || token.System == *match.System
			code := match.Code == nil || token.Code == *match.Code
			if system && code {
				return true
			}
		}
	}
	return false
}

func testSearchPositions(t *testing.T, open Open) {
	s, _ := open(t)
	for i := range 3 {
		write(t, s, put(fmt.Sprint(i), body(i)))
	}
	next := search(t, s, store.Query{Type: patient, Count: 1, Sort: sorts[1]}).Next
	for name, position := range map[string]store.Position{"garbage": store.Position("x"), "empty": {}, "of another order": next} {
		if _, err := s.Search(t.Context(), store.Query{Type: patient, Count: 1, Sort: sorts[4], After: position}); !errors.Is(err, store.ErrBadPosition) {
			t.Errorf("%s: got %v, want ErrBadPosition", name, err)
		}
	}
}

// testPagingUnderWrites walks through all pages while others write: what lives
// throughout, and does not change its place in the order, is found exactly once.
func testPagingUnderWrites(t *testing.T, open Open) {
	s, other := open(t)
	const steady = 60
	for i := range steady {
		write(t, s, put(fmt.Sprintf("steady-%02d", i), body(i)))
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("passing-%d-%d", w, i%20)
				op := put(id, body(i))
				if i%3 == 2 {
					op = del(id)
				}
				if _, err := []store.Store{s, other}[w%2].Write(t.Context(), []store.Op{op}); err != nil {
					t.Errorf("write %s: %v", id, err)
					return
				}
			}
		})
	}
	for round := range 12 {
		for _, sort := range sorts {
			seen := map[string]int{}
			for _, id := range walk(t, s, store.Query{Type: patient, Count: 4 + round, Sort: sort}) {
				seen[id]++
			}
			for i := range steady {
				if id := fmt.Sprintf("steady-%02d", i); seen[id] != 1 {
					t.Errorf("%+v: %s was found %d times", sort, id, seen[id])
				}
			}
		}
	}
	close(stop)
	writers.Wait()
}

func testReplicas(t *testing.T, open Open) {
	s, other := open(t)
	for i := range 20 {
		id := fmt.Sprintf("r-%d", i)
		write(t, s, put(id, body(i)))
		same(t, "read on the other replica", counter(t, get(t, other, id)), i)
		write(t, other, put(id, body(i+100)))
		same(t, "read of its update", counter(t, get(t, s, id)), i+100)
		q := store.Query{Type: patient, IDs: []string{id}, Count: 1}
		same(t, "search on the writing replica", counter(t, search(t, other, q).Records[0]), i+100)
		within(t, "search on the other replica", func() bool {
			page := search(t, s, q)
			return len(page.Records) == 1 && counter(t, page.Records[0]) == i+100
		})
		write(t, s, del(id))
		var gone *store.DeletedError
		if _, err := other.Get(t.Context(), key(id)); !errors.As(err, &gone) {
			t.Errorf("get of a deleted record on the other replica: %v", err)
		}
		same(t, "search after the delete", len(search(t, s, q).Records), 0)
		within(t, "search after the delete on the other replica", func() bool { return len(search(t, other, q).Records) == 0 })
	}
}
