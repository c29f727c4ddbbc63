package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// historyVersion is one version in a history.
type historyVersion struct {
	Key     store.Key
	Version int64
	Updated time.Time
	Method  store.Method
	Deleted bool
	Body    string
	// Until is when the next version was written. It is zero for the newest version.
	Until time.Time
}

func toHistoryVersion(r store.Record) historyVersion {
	return historyVersion{Key: r.Key, Version: r.Version, Updated: r.Updated, Method: r.Method, Deleted: r.Deleted, Body: string(r.Body.JSON)}
}

// name identifies the version.
func (v historyVersion) name() string {
	return fmt.Sprintf("%s/%s/%d", v.Key.Type, v.Key.ID, v.Version)
}

func history(t *testing.T, s store.Store, query store.HistoryQuery) store.Page {
	t.Helper()
	page, err := s.History(t.Context(), query)
	if err != nil {
		t.Fatalf("history %+v: %v", query, err)
	}
	if len(page.Records) > query.Count {
		t.Fatalf("history %+v: a page has %d versions, want at most %d", query, len(page.Records), query.Count)
	}
	return page
}

// allVersions returns the versions on all pages of a query.
func allVersions(t *testing.T, s store.Store, query store.HistoryQuery) []historyVersion {
	t.Helper()
	versions := []historyVersion{}
	for range 100_000 {
		page := history(t, s, query)
		for _, r := range page.Records {
			versions = append(versions, toHistoryVersion(r))
		}
		if page.Next == nil {
			return versions
		}
		query.After = page.Next
	}
	t.Fatalf("history %+v: pages without end", query)
	return nil
}

// testHistoryPeriods tests Since and Current.
func testHistoryPeriods(t *testing.T, open Open) {
	s, other := open(t)
	var at []time.Time
	for i := range 5 {
		at = append(at, write(t, []store.Store{s, other}[i%2], put("rex", body(i))).Record.Updated)
	}
	at = append(at, write(t, s, del("rex")).Record.Updated)
	const instant = time.Millisecond
	range_ := func(from, until time.Time) []store.TimeRange {
		return []store.TimeRange{{From: from, Until: until}}
	}
	for name, test := range map[string]struct {
		query store.HistoryQuery
		want  []int64
	}{
		"since the third":               {store.HistoryQuery{Since: at[2]}, []int64{5, 4, 3}},
		"since just after the third":    {store.HistoryQuery{Since: at[2].Add(instant)}, []int64{5, 4}},
		"since, with the deletion":      {store.HistoryQuery{Since: at[4], Deletions: true}, []int64{6, 5}},
		"since the future":              {store.HistoryQuery{Since: at[5].Add(time.Hour), Deletions: true}, []int64{}},
		"at the time of the second":     {store.HistoryQuery{Current: range_(at[1], at[1].Add(instant))}, []int64{2}},
		"until the second":              {store.HistoryQuery{Current: range_(time.Time{}, at[1])}, []int64{1}},
		"just before the second on":     {store.HistoryQuery{Current: range_(at[1].Add(-instant), at[2].Add(instant))}, []int64{3, 2, 1}},
		"before the first":              {store.HistoryQuery{Current: range_(time.Time{}, at[0])}, []int64{}},
		"now":                           {store.HistoryQuery{Current: range_(at[5], time.Time{}), Deletions: true}, []int64{6}},
		"now, without deletions":        {store.HistoryQuery{Current: range_(at[5], time.Time{})}, []int64{}},
		"at either of two times":        {store.HistoryQuery{Current: append(range_(at[0], at[0].Add(instant)), range_(at[3], at[3].Add(instant))...)}, []int64{4, 1}},
		"never":                         {store.HistoryQuery{Current: []store.TimeRange{}}, []int64{}},
		"since and at":                  {store.HistoryQuery{Since: at[1], Current: range_(time.Time{}, at[3])}, []int64{3, 2}},
		"of the type, since the third":  {store.HistoryQuery{Key: store.Key{Type: patient}, Since: at[2]}, []int64{5, 4, 3}},
		"of the site, until the second": {store.HistoryQuery{Key: store.Key{}, Current: range_(time.Time{}, at[1])}, []int64{1}},
	} {
		query := test.query
		if query.Key.Type == "" && name[:2] != "of" {
			query.Key = key("Rex")
		}
		for _, query.Count = range []int{1, 2, 100} {
			for _, replica := range []store.Store{s, other} {
				eventually(t, name, func() bool { return history(t, replica, query).Total == int64(len(test.want)) })
				numbers := []int64{}
				for _, v := range allVersions(t, replica, query) {
					numbers = append(numbers, v.Version)
				}
				same(t, fmt.Sprintf("%s, in pages of %d", name, query.Count), numbers, test.want)
			}
		}
	}
}

// writeRandomVersions makes random writes to records of two types. It returns all versions, read
// from the histories of the single records.
func writeRandomVersions(t *testing.T, s store.Store, writes int) []historyVersion {
	t.Helper()
	rnd := random()
	types := []string{patient, "Person"}
	for i := range writes {
		op := put(fmt.Sprintf("R-%d", rnd.IntN(writes/6)), body(i))
		op.Key.Type = types[rnd.IntN(2)]
		switch rnd.IntN(12) {
		case 0, 1:
			op.Kind, op.Method = store.Delete, store.MethodDelete
		case 2:
			op.Kind = store.Purge
		case 3:
			op.Method = store.MethodPatch
		}
		write(t, s, op)
	}
	var all []historyVersion
	for _, recordType := range types {
		for i := range writes / 6 {
			query := store.HistoryQuery{Key: store.Key{Type: recordType, ID: fmt.Sprintf("r-%d", i)}, Count: writes, Deletions: true}
			page, err := s.History(t.Context(), query)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			var until time.Time
			for _, r := range page.Records {
				v := toHistoryVersion(r)
				v.Until, until = until, v.Updated
				all = append(all, v)
			}
		}
	}
	return all
}

// naiveHistory returns the versions that match a query, by name. It tests each version.
func naiveHistory(all []historyVersion, query store.HistoryQuery) map[string]historyVersion {
	matching := map[string]historyVersion{}
	for _, v := range all {
		ofType := query.Key.Type == v.Key.Type
		if query.Key.Type == "" {
			ofType = query.Types == nil || slices.Contains(query.Types, v.Key.Type)
		}
		since := query.Since.IsZero() || !v.Updated.Before(query.Since)
		current := query.Current == nil
		for _, r := range query.Current {
			starts := r.Until.IsZero() || v.Updated.Before(r.Until)
			ends := v.Until.IsZero() || r.From.Before(v.Until)
			current = current || starts && ends
		}
		if ofType && since && current && (query.Deletions || !v.Deleted) {
			v.Until = time.Time{}
			matching[v.name()] = v
		}
	}
	return matching
}

// testHistoryOfMany compares histories of a type and of the site with those of the single records.
func testHistoryOfMany(t *testing.T, open Open) {
	s, _ := open(t)
	if page := history(t, s, store.HistoryQuery{Count: 10}); page.Total != 0 || len(page.Records) != 0 || page.Next != nil {
		t.Errorf("an empty site has the history %+v", page)
	}
	all := writeRandomVersions(t, s, 240)
	rnd := random()
	instant := func() time.Time { return all[rnd.IntN(len(all))].Updated }
	for range 120 {
		query := store.HistoryQuery{
			Key:       store.Key{Type: []string{"", patient, "Person", "Group"}[rnd.IntN(4)]},
			Deletions: rnd.IntN(2) == 0,
			Count:     []int{1, 7, 50, 1000}[rnd.IntN(4)],
		}
		if rnd.IntN(3) == 0 {
			query.Since = instant()
		}
		if rnd.IntN(3) == 0 {
			query.Types = [][]string{{}, {"Person"}, {patient, "Person", "Group"}}[rnd.IntN(3)]
		}
		for range rnd.IntN(3) {
			query.Current = append(query.Current, store.TimeRange{From: instant(), Until: instant()})
		}
		what := fmt.Sprintf("%+v", query)
		want := naiveHistory(all, query)
		got := map[string]historyVersion{}
		versions := allVersions(t, s, query)
		for _, v := range versions {
			got[v.name()] = v
		}
		same(t, what, got, want)
		same(t, what+": repeated versions", len(versions)-len(got), 0)
		if !slices.IsSortedFunc(versions, func(a, b historyVersion) int { return b.Updated.Compare(a.Updated) }) {
			t.Errorf("%s: got %v, want newest first", what, versions)
		}
		same(t, what+": total", history(t, s, query).Total, int64(len(want)))
		query.Count = 0
		counted := history(t, s, query)
		same(t, what+": total alone", []any{counted.Total, len(counted.Records), counted.Next == nil}, []any{int64(len(want)), 0, true})
	}
}

func testHistoryPositions(t *testing.T, open Open) {
	s, _ := open(t)
	for i := range 4 {
		write(t, s, put("rex", body(i)))
	}
	ofOne := store.HistoryQuery{Key: key("rex"), Count: 1}
	ofType := store.HistoryQuery{Key: store.Key{Type: patient}, Count: 1}
	nextOfOne, nextOfType := history(t, s, ofOne).Next, history(t, s, ofType).Next
	for name, test := range map[string]struct {
		query store.HistoryQuery
		after store.Position
	}{
		"of one record in its type's": {ofType, nextOfOne},
		"of a type in one record's":   {ofOne, nextOfType},
		"garbage":                     {ofType, store.Position("x")},
		"nothing":                     {ofType, store.Position("")},
		"an empty one":                {ofType, store.Position("{}")},
	} {
		test.query.After = test.after
		if _, err := s.History(t.Context(), test.query); !errors.Is(err, store.ErrBadPosition) {
			t.Errorf("%s: got %v, want ErrBadPosition", name, err)
		}
	}
}

const (
	// writesPerPage is the number of writes that pacing allows for each page of a history.
	writesPerPage = 4
	// writesPerSearch is the same for a search. It is less than the number of records on a page, because
	// a record that is written moves to the end of some orders.
	writesPerSearch = 2
)

// pacing is a store whose writers wait for its histories and searches: without that, a slow machine would
// write so much during a page that the pages never end.
type pacing struct {
	store.Store
	writes chan struct{}
}

// History implements store.Store.
func (p pacing) History(ctx context.Context, query store.HistoryQuery) (store.Page, error) {
	p.allow(writesPerPage)
	return p.Store.History(ctx, query)
}

// Search implements store.Store.
func (p pacing) Search(ctx context.Context, query store.Query) (store.Page, error) {
	p.allow(writesPerSearch)
	return p.Store.Search(ctx, query)
}

func (p pacing) allow(writes int) {
	for range writes {
		select {
		case p.writes <- struct{}{}:
		default: // the writers are slower than the pages
		}
	}
}

// testHistoryPagingUnderWrites shows that paging through the history of the site during writes
// returns each version that was written before the first page exactly once.
func testHistoryPagingUnderWrites(t *testing.T, open Open) {
	s, other := open(t)
	before := map[string]bool{}
	for i := range 60 {
		before[toHistoryVersion(write(t, s, put(fmt.Sprintf("steady-%02d", i%30), body(i))).Record).name()] = true
	}
	stop := make(chan struct{})
	paged := pacing{s, make(chan struct{}, 2*writesPerPage)}
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-paged.writes:
				}
				// Each record has few enough versions that engines keep the first ones.
				op := put(fmt.Sprintf("passing-%d-%d", w, i%40), body(i))
				if i%3 == 2 {
					op = del(op.Key.ID)
				}
				if _, err := []store.Store{s, other}[w].Write(t.Context(), []store.Op{op}); err != nil {
					t.Errorf("write %s: %v", op.Key.ID, err)
					return
				}
			}
		})
	}
	for round := range 8 {
		seen := map[string]int{}
		for _, v := range allVersions(t, paged, store.HistoryQuery{Count: 5 + 9*round, Deletions: true}) {
			seen[v.name()]++
		}
		for name := range before {
			if seen[name] != 1 {
				t.Errorf("pages of %d: %s was returned %d times, want 1", 5+9*round, name, seen[name])
			}
		}
	}
	close(stop)
	writers.Wait()
}
