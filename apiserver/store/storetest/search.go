package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
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

// populate makes random writes to records of one type and returns the live records.
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

func testSearchPages(t *testing.T, open Open) {
	s, _ := open(t)
	truth := newTruth(populate(t, s, 150))
	for _, sort := range sorts {
		for _, count := range []int{1, 2, 7, 1000} {
			q := store.Query{Types: patients, Sort: []store.Sort{sort}, Count: count}
			want := truth.matches(q)
			got := allRecords(t, s, q)
			alignTies(q, want, got)
			same(t, fmt.Sprintf("%+v", q), keysOf(got), keysOf(records(want)))
		}
	}
	same(t, "another type", allIDs(t, s, store.Query{Types: []string{"Person"}, Count: 10}), []string{"p-1"})
	same(t, "a type without records", allIDs(t, s, store.Query{Types: []string{"Group"}, Count: 10}), []string{})
	same(t, "no type", allIDs(t, s, store.Query{Count: 10}), []string{})
}

func testSearchTotals(t *testing.T, open Open) {
	s, _ := open(t)
	for i := range 12 {
		write(t, s, put(fmt.Sprint(i), body(i)))
	}
	q := store.Query{Types: patients, Count: 5}
	first := search(t, s, q)
	same(t, "total on the first page", first.Total, int64(12))
	q.Total = store.TotalAccurate
	same(t, "accurate total", search(t, s, q).Total, int64(12))
	q.After = first.Next
	same(t, "accurate total on a later page", search(t, s, q).Total, int64(12))
	q.Count, q.After = 0, nil
	counted := search(t, s, q)
	same(t, "total alone", []any{counted.Total, len(counted.Records), counted.Next == nil}, []any{int64(12), 0, true})
	q = store.Query{Types: patients, Count: 5, Total: store.TotalNone}
	same(t, "no total", search(t, s, q).Total, store.UnknownTotal)
	q.Where, q.Total = store.IDIn{"3", "4", "nobody"}, store.TotalAccurate
	same(t, "total of a condition", search(t, s, q).Total, int64(2))
	for name, nothing := range map[string]store.Condition{
		"no alternative": store.Any{}, "no id": store.IDIn{}, "nobody's id": store.IDIn{"nobody"},
		"no record of an id": store.RefersToID{Param: "organization", ID: "nobody"},
	} {
		for _, where := range []store.Condition{nothing, store.All{nothing}, store.All{nothing, store.Any{}}} {
			for _, count := range []int{0, 5} {
				q.Where, q.Count = where, count
				same(t, "total of "+name, search(t, s, q).Total, int64(0))
			}
		}
	}
}

// testSearchSkips compares pages at all values of Skip, with their totals, with the reference
// evaluator.
func testSearchSkips(t *testing.T, open Open) {
	s, _ := open(t)
	d := dice{random()}
	truth := populateTypes(t, s, d, 150)
	for n := range 300 {
		q := d.query(truth.records)
		q.Includes = nil
		q.Total = pick(d, store.TotalWhenFree, store.TotalAccurate, store.TotalNone)
		want := truth.matches(q)
		alignTies(q, want, allRecords(t, s, q))
		from := 0
		if n%3 == 0 && q.Count < len(want) {
			q.After, from = search(t, s, q).Next, q.Count
		}
		for skip := range max(0, len(want)-from) + 2 {
			if q.Skip = skip; from+skip > len(want) {
				q.Skip = math.MaxInt - n // far past the end
			}
			at := min(from+skip, len(want))
			until := min(at+q.Count, len(want))
			what := fmt.Sprintf("query %d %+v", n, q)
			page := search(t, s, q)
			same(t, what, keysOf(page.Records), keysOf(records(want[at:until])))
			same(t, "end of "+what, page.Next == nil, until == len(want))
			total := int64(len(want))
			if q.Total == store.TotalNone || q.Total == store.TotalWhenFree && q.After != nil {
				total = store.UnknownTotal
			}
			same(t, "total of "+what, page.Total, total)
			if t.Failed() {
				return
			}
		}
	}
}

func testSearchPositions(t *testing.T, open Open) {
	s, _ := open(t)
	for i := range 3 {
		write(t, s, put(fmt.Sprint(i), body(i)))
	}
	next := search(t, s, store.Query{Types: patients, Count: 1, Sort: sorts[1:2]}).Next
	for name, position := range map[string]store.Position{"garbage": store.Position("x"), "empty": {}, "of another order": next} {
		if _, err := s.Search(t.Context(), store.Query{Types: patients, Count: 1, Sort: sorts[4:5], After: position}); !errors.Is(err, store.ErrBadPosition) {
			t.Errorf("%s: got %v, want ErrBadPosition", name, err)
		}
	}
}

// testPagingUnderWrites pages through all results during writes. A record that stays live and keeps
// its place in the order is found exactly once.
func testPagingUnderWrites(t *testing.T, open Open) {
	s, other := open(t)
	const steady = 60
	for i := range steady {
		write(t, s, put(fmt.Sprintf("steady-%02d", i), body(i)))
	}
	stop := make(chan struct{})
	paged := pacing{s, make(chan struct{}, 2*writesPerSearch)}
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-paged.writes:
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
			for _, id := range allIDs(t, paged, store.Query{Types: patients, Count: 4 + round, Sort: []store.Sort{sort}}) {
				seen[id]++
			}
			for i := range steady {
				if id := fmt.Sprintf("steady-%02d", i); seen[id] != 1 {
					t.Errorf("%+v: %s was found %d times, want 1", sort, id, seen[id])
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
		q := store.Query{Types: patients, Where: store.IDIn{id}, Count: 1}
		same(t, "search on the writing replica", counter(t, search(t, other, q).Records[0]), i+100)
		eventually(t, "search on the other replica", func() bool {
			page := search(t, s, q)
			return len(page.Records) == 1 && counter(t, page.Records[0]) == i+100
		})
		write(t, s, del(id))
		var gone *store.DeletedError
		if _, err := other.Get(t.Context(), key(id)); !errors.As(err, &gone) {
			t.Errorf("get of a deleted record on the other replica: %v", err)
		}
		same(t, "search after the delete", len(search(t, s, q).Records), 0)
		eventually(t, "search after the delete on the other replica", func() bool { return len(search(t, other, q).Records) == 0 })
	}
}

// testConsistentSearch tests that a search with Query.Consistent sees each write of the other replica
// that was acknowledged before it, and ends although both replicas purge records meanwhile.
func testConsistentSearch(t *testing.T, open Open) {
	s, other := open(t)
	purging, stop := context.WithCancel(t.Context())
	var purges sync.WaitGroup
	defer purges.Wait()
	defer stop()
	for i, replica := range []store.Store{s, other} {
		purges.Go(func() {
			for n := 0; purging.Err() == nil; n++ {
				group := store.Key{Type: "Group", ID: fmt.Sprintf("purged-%d-%d", i, n)}
				for _, op := range []store.Op{{Kind: store.Put, Key: group, Method: store.MethodPut, Body: body(n)}, {Kind: store.Purge, Key: group}} {
					if _, err := replica.Write(t.Context(), []store.Op{op}); err != nil {
						t.Errorf("write %v: %v", group, err)
						return
					}
				}
			}
		})
	}
	query := store.Query{Types: patients, Count: 100, Consistent: true, Sort: []store.Sort{{Field: store.SortID}}}
	for i := range 20 {
		for id, writer := range map[string]store.Store{"a": s, "b": other} {
			reader := s
			if writer == s {
				reader = other
			}
			write(t, writer, put(id, body(i)))
			records := search(t, reader, query).Records
			same(t, "records", len(records), 1)
			same(t, "version of the record", counter(t, records[0]), i)
			write(t, writer, del(id))
			same(t, "records after the delete", len(search(t, reader, query).Records), 0)
		}
	}
}

// testManyConditions searches by a hundred conditions, which all engines must accept, and by so
// many that an engine may refuse them.
func testManyConditions(t *testing.T, open Open) {
	s, _ := open(t)
	write(t, s, put("rex", body(1)))
	for _, n := range []int{100, 20_000} {
		where := store.All{}
		for range n {
			where = append(where, store.Not{Condition: store.IDIn{"nobody"}})
		}
		page, err := s.Search(t.Context(), store.Query{Types: patients, Where: where, Count: 10})
		var tooMany *store.TooManyConditionsError
		switch {
		case errors.As(err, &tooMany):
			if n == 100 || tooMany.Count <= tooMany.Max {
				t.Errorf("%d conditions: got %v", n, err)
			}
		case err != nil:
			t.Errorf("%d conditions: got %v, want a page or *store.TooManyConditionsError", n, err)
		default:
			same(t, fmt.Sprint(n, " conditions"), keysOf(page.Records), []store.Key{key("rex")})
		}
	}
}
