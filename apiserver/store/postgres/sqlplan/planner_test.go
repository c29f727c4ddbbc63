package sqlplan

import (
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// A page begins after the last hit of the previous one, or at its place if that had an earlier type.
func TestCursors(t *testing.T) {
	last := func(rank order.Rank, typeName string) *order.Place {
		return &order.Place{Ranks: []order.Rank{rank}, Created: 77, Type: typeName, ID: "z"}
	}
	byBirth := []store.Sort{{Field: store.SortPeriod, Param: "birthdate", Descending: true}}
	for _, c := range []struct {
		name  string
		sort  []store.Sort
		after *order.Place
		want  string
	}{
		{"creation", nil, last(order.Rank{}, patient), "r.rid > $"},
		{"creation, same place", nil, last(order.Rank{}, "Organization"), "r.rid >= $"},
		{"newest first", []store.Sort{{Field: store.SortCreated, Descending: true}}, last(order.Rank{}, patient), "r.rid < $"},
		{"by text", lastName, last(order.Rank{Text: "okafor"}, patient), "(x.val, x.rid) > ($"},
		{"by period, descending", byBirth, last(order.Rank{Number: 5}, patient), "(x.lo, x.rid) < ($"},
		{"without a value", lastName, last(order.Rank{Missing: true}, patient), "NOT (r.vals LIKE"},
		{"by update", []store.Sort{{Field: store.SortUpdated}}, last(order.Rank{Number: 5}, patient), "r.upd >= $"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := searchOf(t, testIndex(t, &database{}), store.Query{Sort: c.sort, Count: 20})
			s.After = c.after
			if page := pageOf(t, s); !strings.Contains(page.SQL, c.want) {
				t.Errorf("no %q in %s", c.want, page.SQL)
			}
		})
	}
}

// In the order of a parameter with a condition, only the ranges after the previous page are scanned.
func TestRangesAfterAPage(t *testing.T) {
	area := func(least, most int64) store.PeriodArea {
		return store.PeriodArea{From: store.Bounds{Least: least, Most: most}, Until: store.Unbounded}
	}
	where := store.SinglePeriodIn{Param: "birthdate", Areas: []store.PeriodArea{area(10, 19), area(30, 39), area(50, 59)}}
	for _, c := range []struct {
		descending bool
		last       int64
		want       int
	}{{false, 5, 3}, {false, 35, 2}, {false, 45, 1}, {true, 35, 2}, {true, 15, 1}} {
		s := searchOf(t, testIndex(t, &database{}), store.Query{
			Where: where, Count: 20, Sort: []store.Sort{{Field: store.SortPeriod, Param: "birthdate", Descending: c.descending}},
		})
		s.After = &order.Place{Ranks: []order.Rank{{Number: c.last}}, Type: patient, ID: "z"}
		if got := strings.Count(pageOf(t, s).SQL, "(SELECT x.rid, x.lo FROM ix_date x"); got != c.want {
			t.Errorf("descending %t after %d: %d ranges, want %d", c.descending, c.last, got, c.want)
		}
	}
}

// Alternatives on different parameters are scanned at the same time, unless they are too many.
func TestMergedScans(t *testing.T) {
	for n, want := range map[int]bool{2: true, maxMergedScans: true, maxMergedScans + 1: false} {
		where := store.Any{}
		for i := range n {
			where = append(where, code("parameter"+strconv.Itoa(i), "1"))
		}
		page := pageOf(t, searchOf(t, testIndex(t, &database{}), store.Query{Where: where, Count: 20}))
		if merged := strings.Contains(page.SQL, "SELECT DISTINCT x.rid FROM (("); merged != want || page.IsBounded != want {
			t.Errorf("%d alternatives: merged %t, is bounded %t, want %t", n, merged, page.IsBounded, want)
		}
	}
}

// Many alternatives of a kind are one condition with arrays.
func TestAlternativeGroups(t *testing.T) {
	for name, c := range map[string]struct {
		alternative func(n string) store.Condition
		want        string
	}{
		"codes":    {func(n string) store.Condition { return code("identifier", n) }, "w(code)"},
		"tokens":   {func(n string) store.Condition { return store.TokenIs{Param: "identifier", System: &n, Code: &n} }, "w(code, sys)"},
		"prefixes": {func(n string) store.Condition { return store.TextIs{Param: "family", Text: n} }, "w(least, beyond)"},
		"records": {func(n string) store.Condition {
			return store.RefersTo{Param: "organization", To: store.Reference{Type: "Organization", ID: n}}
		}, "x.tgt = ANY("},
	} {
		where := store.Any{}
		for n := range 1000 {
			where = append(where, c.alternative(strconv.Itoa(n)))
		}
		page := pageOf(t, searchOf(t, testIndex(t, &database{}), store.Query{Where: where, Count: 20}))
		if !strings.Contains(page.SQL, c.want) || len(page.SQL) > 3000 {
			t.Errorf("%s: %.3000s", name, page.SQL)
		}
	}
}

// A prefix longer than what is indexed leads to no range.
func TestLongPrefix(t *testing.T) {
	for length, ranged := range map[int]bool{indexrow.MaxIndexedBytes: true, indexrow.MaxIndexedBytes + 1: false} {
		where := store.TextIs{Param: "family", Text: strings.Repeat("x", length)}
		page := pageOf(t, searchOf(t, testIndex(t, &database{}), store.Query{Where: where, Count: 20}))
		if strings.Contains(page.SQL, "x.val >= ") != ranged || !strings.Contains(page.SQL, "r.vals LIKE") {
			t.Errorf("%d bytes: %s", length, page.SQL)
		}
	}
}

func TestIncludes(t *testing.T) {
	s := searchOf(t, testIndex(t, &database{}), store.Query{Includes: []store.Include{{Reverse: true, Param: "subject"}}})
	if !s.NeedsReferencePaths() {
		t.Fatal("an include of any type needs no reference paths")
	}
	s.ReferencePaths = []indexrow.ReferencePath{
		{Type: "Device", Param: "patient", Target: patient}, {Type: "Observation", Param: "subject", Target: patient}, {Type: "Observation", Param: "subject", Target: "Group"},
	}
	_, args, err := s.Referring(s.Query.Includes[0], []int64{1}, []int64{2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	keys, types := args[2].([]int64), args[4].([]string)
	if len(keys) != 1 || keys[0] != s.Index.Hash.Param("Observation", "subject") || strings.Join(types, " ") != "Device Observation" {
		t.Errorf("keys %v, types %v", keys, types)
	}
}

// A page after a skip returns rids of the skipped matches only, and reads the rows of the page.
func TestPageAfterSkip(t *testing.T) {
	s := searchOf(t, testIndex(t, &database{}), store.Query{Where: smith, Count: 20, Skip: 40, Sort: lastName})
	s.Query.Types = []string{"Organization", patient}
	sql, args, err := s.PageAfterSkip()
	if err != nil {
		t.Fatal(err)
	}
	n := len(args)
	if args[n-2] != 21 || args[n-1] != 40 || strings.Count(sql, "r.*") != 1 || !strings.Contains(sql, "LIMIT $"+strconv.Itoa(n-1)+" OFFSET $"+strconv.Itoa(n)) {
		t.Errorf("statement: %s %v", sql, args)
	}
}
