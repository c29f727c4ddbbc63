package sqlplan

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

const patient = "Patient"

// database has fixed statistics, and the lists that are known to be long.
type database struct {
	entries map[int64]float64
	long    map[uint64]bool
	numbers []int64
	records float64
	earlier indexrow.Earlier
}

func (d *database) EntryCount(_ context.Context, key int64) float64 {
	if n, known := d.entries[key]; known {
		return n
	}
	return math.Inf(1)
}

func (d *database) RecordCount(context.Context, string) float64 {
	if d.records == 0 {
		return math.Inf(1)
	}
	return d.records
}

func (d *database) Earlier() indexrow.Earlier { return d.earlier }

func (d *database) LongList(key uint64) (isSlow, known bool) {
	isSlow, known = d.long[key]
	return isSlow, known
}

func (d *database) ReadNumbers(context.Context, string, []any) ([]int64, error) {
	return d.numbers, nil
}

// extractor has the facet gender with two common codes, and the union telecom.
type extractor struct{}

func (extractor) IsFacet(param string) bool   { return param == "gender" }
func (extractor) Fold(original string) string { return strings.ToLower(original) }
func (extractor) Parts(_, param string) []string {
	if param != "telecom" {
		return nil
	}
	return []string{"phone"}
}

func (extractor) CommonCodes(string) []store.CommonCode {
	return []store.CommonCode{{Param: "gender", Token: store.Token{System: "s", Code: "common"}}, {Param: "gender", Token: store.Token{System: "s", Code: "usual"}}}
}

func (extractor) Ordinal(_, param string) int {
	return slices.Index([]string{"birthdate", "phone"}, param)
}

func testIndex(t *testing.T, of *database) *Index {
	t.Helper()
	hash, err := indexrow.NewHasher([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	return &Index{
		Number: 3, Hash: hash, Extractor: extractor{},
		Limits: DefaultLimits, Columns: "r.*", Database: of,
	}
}

// searchOf returns a search whose page has all branches.
func searchOf(t *testing.T, index *Index, query store.Query) *Search {
	t.Helper()
	query.Types = []string{patient}
	return &Search{Context: t.Context(), Index: index, Query: query, Order: order.Of(query), AllBranches: true}
}

func pageOf(t *testing.T, s *Search) *Page {
	t.Helper()
	page, err := s.Page(patient)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func code(param, code string) store.TokenIs { return store.TokenIs{Param: param, Code: &code} }

var (
	smith    = store.TextIs{Param: "family", Text: "smith"}
	since90  = store.SinglePeriodIn{Param: "birthdate", Areas: []store.PeriodArea{{From: store.Bounds{Least: 631152000000000, Most: store.TheEnd}, Until: store.Unbounded}}}
	lastName = []store.Sort{{Field: store.SortText, Param: "family"}}
)

// TestPlans compares which tables a statement reads, and by which it scans.
func TestPlans(t *testing.T) {
	for _, c := range []struct {
		name         string
		query        store.Query
		has, without []string
		lists        int
		isBounded    bool
	}{
		{name: "all records", has: []string{"FROM res r WHERE"}, without: []string{"few", "ix_"}, isBounded: true},
		{name: "an id", query: store.Query{Where: store.IDIn{"a"}}, has: []string{"few1"}, without: []string{"LIMIT $3) l"}},
		{name: "a code is scanned, not listed", query: store.Query{Where: code("identifier", "1")}, has: []string{"ix_code"}, without: []string{"few"}, isBounded: true},
		{name: "a prefix is listed or scanned", query: store.Query{Where: smith}, has: []string{"few1", "cardinality(rids) <", ">= $"}, lists: 1},
		{name: "two conditions", query: store.Query{Where: store.All{smith, since90}}, has: []string{"few1", "some2", "few3"}, lists: 2},
		{name: "at most four lists", query: store.Query{Where: store.All{smith, since90, code("identifier", "1"), code("other", "1"), code("another", "1")}}, without: []string{"few10"}, lists: maxMaterializedLists},
		{name: "a facet filters index rows", query: store.Query{Where: store.All{smith, code("gender", "female")}}, has: []string{"x.facets &", "= ANY(r.marks)"}, lists: 2},
		{name: "presence without a bit", query: store.Query{Where: store.Present{Param: "family"}}, has: []string{"= ANY(r.marks)"}, without: []string{"few", "ix_"}},
		{name: "presence", query: store.Query{Where: store.Present{Param: "phone"}}, has: []string{"NOT x.deleted AND (x.present & $3) <> 0 ORDER BY x.rid", "(r.present & $6) <> 0"}, without: []string{"few", "ix_"}},
		{name: "absence", query: store.Query{Where: store.Not{Condition: store.Present{Param: "phone"}}}, has: []string{"NOT x.deleted AND (x.present & $3) = 0 ORDER BY x.rid"}, without: []string{"few", "ix_"}},
		{name: "a common code", query: store.Query{Where: code("gender", "common")}, has: []string{"NOT x.deleted AND CASE WHEN x.present < 0 THEN (x.present & $4) <> 0 ELSE (SELECT e.marks && "}, without: []string{"few", "ix_"}},
		{name: "common codes", query: store.Query{Where: store.Any{code("gender", "common"), code("gender", "usual")}}, has: []string{"CASE WHEN x.present < 0 THEN (x.present & $4) <> 0", "r.marks && "}, without: []string{"few", "ix_"}},
		{name: "a common code or another", query: store.Query{Where: store.Any{code("gender", "common"), code("gender", "female")}}, has: []string{"few1", "CASE WHEN x.present < 0", "ix_code x", "= ANY(r.marks)"}, lists: 1},
		{name: "a common code in the order of a parameter", query: store.Query{Where: code("gender", "common"), Sort: lastName}, has: []string{"few1", "(x.facets & "}, lists: 1},
		{name: "a common code and a list", query: store.Query{Where: store.All{code("gender", "common"), since90}}, has: []string{"few1", "few2 AS MATERIALIZED (SELECT COALESCE(array_agg(rid), '{}') AS rids FROM (SELECT rid FROM (SELECT x.rid FROM res x", "ix_date x"}, lists: 2},
		{name: "not a common code", query: store.Query{Where: store.Not{Condition: code("gender", "common")}}, has: []string{"AND NOT (CASE WHEN x.present < 0"}, without: []string{"few", "ix_"}},
		{name: "a code of a union", query: store.Query{Where: code("telecom", "1")}, has: []string{"SELECT DISTINCT x.rid FROM ((SELECT DISTINCT x.rid FROM ix_code x WHERE x.site = $1 AND x.key = $3 ", ") UNION ALL (SELECT DISTINCT x.rid FROM ix_code x "}, without: []string{"few"}, isBounded: true},
		{name: "codes of a union", query: store.Query{Where: store.Any{code("telecom", "1"), code("telecom", "2")}}, has: []string{"ix_code x WHERE x.site = $1 AND x.key = ANY($"}, lists: 1},
		{name: "presence in the order of a parameter", query: store.Query{Where: store.Present{Param: "phone"}, Sort: lastName}, has: []string{"few1", "(r.present & "}, lists: 1},
		{name: "short lists are tested before all else", query: store.Query{Where: store.All{smith, since90, store.Not{Condition: code("identifier", "1")}}, Sort: lastName}, has: []string{"d.rid IN (SELECT rid FROM some2) ELSE TRUE END AND CASE WHEN (SELECT count(*) FROM some5)"}, lists: 2},
		{name: "in the order of a parameter", query: store.Query{Sort: lastName}, has: []string{"FROM ix_text x", "(x.facets & $3) = $3", "ORDER BY d.val ASC", "AND NOT (r.vals LIKE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.query.Count = 20
			page := pageOf(t, searchOf(t, testIndex(t, &database{}), c.query))
			for _, text := range c.has {
				if !strings.Contains(page.SQL, text) {
					t.Errorf("no %q in %s", text, page.SQL)
				}
			}
			for _, text := range c.without {
				if strings.Contains(page.SQL, text) {
					t.Errorf("%q in %s", text, page.SQL)
				}
			}
			if len(page.TriedLists) != c.lists || page.IsBounded != c.isBounded {
				t.Errorf("tried %d lists, is bounded: %t, want %d, %t", len(page.TriedLists), page.IsBounded, c.lists, c.isBounded)
			}
			if !strings.Contains(page.SQL, "$"+strconv.Itoa(len(page.Args))) || strings.Contains(page.SQL, "$"+strconv.Itoa(len(page.Args)+1)) {
				t.Errorf("%d arguments for %s", len(page.Args), page.SQL)
			}
		})
	}
}

// A list that is known to be long is not tried. The scan in its place is short unless it was slow or
// has too many entries to pass.
func TestLongListsAreSkipped(t *testing.T) {
	for _, c := range []struct {
		name    string
		records float64
		slow    bool
		want    bool
	}{
		{"quick", 1_140_000, false, true},
		{"slow", 1_140_000, true, false},
		{"of too many records", 1_150_000, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := &database{records: c.records, long: map[uint64]bool{}}
			index := testIndex(t, db)
			s := searchOf(t, index, store.Query{Where: smith, Count: 20})
			first := pageOf(t, s)
			if first.IsBounded || len(first.TriedLists) != 1 {
				t.Fatalf("first: %+v", first)
			}
			db.long[first.TriedLists[0]] = c.slow
			second := pageOf(t, s)
			if len(second.TriedLists) != 0 || !slices.Equal(second.SkippedLists, first.TriedLists) || strings.Contains(second.SQL, "few") || second.IsBounded != c.want {
				t.Errorf("with a long list: %+v, want is bounded: %t", second, c.want)
			}
		})
	}
}

// The first statement of a page has the branch by the first list alone.
func TestPartialPages(t *testing.T) {
	both := store.All{smith, since90}
	for _, c := range []struct {
		name  string
		query store.Query
		has   string
		want  bool
	}{
		{"one condition", store.Query{Where: smith}, "(SELECT NULL, NULL WHERE (SELECT cardinality(rids) FROM few1) >= $6)", true},
		{"two conditions", store.Query{Where: both}, "few1", true},
		{"in the order of a parameter", store.Query{Where: both, Sort: lastName}, "(SELECT NULL, NULL, NULL, NULL, NULL WHERE", true},
		{"without a list", store.Query{Where: code("identifier", "1")}, "ix_code", false},
		{"a list that is always short", store.Query{Where: store.IDIn{"a"}}, "few1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.query.Count = 20
			s := searchOf(t, testIndex(t, &database{}), c.query)
			s.AllBranches = false
			page := pageOf(t, s)
			if page.IsPartial != c.want || !strings.Contains(page.SQL, c.has) {
				t.Errorf("is partial: %t, want %t with %s: %s", page.IsPartial, c.want, c.has, page.SQL)
			}
			if page.IsPartial && (len(page.TriedLists) != 1 || strings.Contains(page.SQL, "few3")) {
				t.Errorf("a partial page tries %d lists: %s", len(page.TriedLists), page.SQL)
			}
		})
	}
}

// A list of records by their time of update is found again in the cache of long lists although its end,
// the watermark, is another one a moment later.
func TestLongListsBeforeWatermark(t *testing.T) {
	index := testIndex(t, &database{})
	minute := time.Now().Truncate(time.Minute).Add(2 * time.Minute)
	at := minute.Add(-time.Hour)
	list := func(from, until time.Time) uint64 {
		t.Helper()
		page := pageOf(t, searchOf(t, index, store.Query{Where: store.UpdatedIn{From: from, Until: until}, Count: 20}))
		if len(page.TriedLists) != 1 {
			t.Fatalf("got %d lists that are tried, want 1", len(page.TriedLists))
		}
		return page.TriedLists[0]
	}
	same := list(at, minute.Add(time.Second))
	if list(at, minute.Add(2*time.Second)) != same {
		t.Error("a second later, the list has another key")
	}
	if list(at.Add(time.Millisecond), minute.Add(time.Second)) == same || list(at, minute.Add(time.Hour)) == same {
		t.Error("a list with another beginning, or that ends an hour later, has the same key")
	}
	if list(at.Add(-time.Hour), at.Add(time.Second)) == list(at.Add(-time.Hour), at.Add(2*time.Second)) {
		t.Error("lists with different ends long before the watermark have the same key")
	}
}

// The list of a parameter with few entries is given up for a scan earlier than that of one with many.
func TestListSizeByEntries(t *testing.T) {
	for entries, want := range map[float64]int{0: 0, 7_000: 144, 1e6: 1732, math.Inf(1): math.MaxInt32} {
		if got := maxListSizeFor(entries, 21, scanListRatio); got != want {
			t.Errorf("%g entries: %d, want %d", entries, got, want)
		}
	}
}

func TestCountConditions(t *testing.T) {
	index := testIndex(t, &database{})
	many := store.Any{}
	for n := range 1000 {
		many = append(many, code("identifier", strconv.Itoa(n)))
	}
	for name, c := range map[string]struct {
		where store.Condition
		want  int
	}{
		"one":    {smith, 1},
		"nested": {store.Not{Condition: store.All{smith, store.Chain{Param: "p", Type: patient, Where: smith}}}, 5},
		"group":  {many, 2},
	} {
		if got := searchOf(t, index, store.Query{Where: c.where}).CountConditions(patient); got != c.want {
			t.Errorf("%s: %d conditions, want %d", name, got, c.want)
		}
	}
}

func TestTooManyArguments(t *testing.T) {
	where := store.All{}
	for n := range math.MaxUint16 {
		where = append(where, store.Present{Param: strconv.Itoa(n)})
	}
	if _, err := searchOf(t, testIndex(t, &database{}), store.Query{Where: where, Count: 1}).Page(patient); !errors.Is(err, store.ErrQueryTimeout) {
		t.Errorf("error: %v", err)
	}
}

// An id without a type stands for the one type of record that is referred to by it.
func TestTypesOfIDs(t *testing.T) {
	db := &database{numbers: []int64{2}}
	index := testIndex(t, db)
	s := searchOf(t, index, store.Query{Where: store.RefersToID{Param: "link", ID: "a"}, Count: 20})
	if !s.NeedsReferencePaths() {
		t.Error("a reference without types needs no reference paths")
	}
	s.ReferencePaths = []indexrow.ReferencePath{{Type: patient, Param: "link", Target: "A"}, {Type: patient, Param: "link", Target: "B"}}
	if page := pageOf(t, s); !slices.Contains(page.Args, any(index.Hash.Self("B", "a"))) || slices.Contains(page.Args, any(index.Hash.Self("A", "a"))) {
		t.Errorf("arguments: %v", page.Args)
	}
	db.numbers, s.resolved = []int64{1, 2}, resolvedTypes{}
	var ambiguous *store.AmbiguousError
	if _, err := s.Page(patient); !errors.As(err, &ambiguous) || !slices.Equal(ambiguous.Types, []string{"A", "B"}) {
		t.Errorf("error: %v", err)
	}
}

// A caller without access to a type finds none of its records, by any path.
func TestAccess(t *testing.T) {
	index := testIndex(t, &database{})
	s := searchOf(t, index, store.Query{Where: smith, Count: 20, Access: store.Access{"Other": store.All{}}})
	page := pageOf(t, s)
	for branch := range strings.SplitSeq(page.SQL, " UNION ALL ") {
		if !strings.Contains(branch, never) {
			t.Errorf("a branch without the access filter: %s", branch)
		}
	}
	sql, _, err := s.ReferredTo([]int64{1}, nil, 1)
	if err != nil || !strings.Contains(sql, "(r.typ = $3 AND "+always+")") {
		t.Errorf("included: %s, %v", sql, err)
	}
	filter, err := index.VersionFilter(t.Context(), index.Statement(), store.HistoryQuery{Access: store.Access{patient: store.HasLabel("vip")}}, true)
	if err != nil || !strings.Contains(filter, "x.labelled IS NOT NULL") || !strings.Contains(filter, "n.self = x.self") {
		t.Errorf("past versions: %s, %v", filter, err)
	}
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"a": "b", "a\xff": "b", "smith": "smiti"} {
		if got := prefixEnd([]byte(prefix)); string(got) != want {
			t.Errorf("end of %q: %q, want %q", prefix, got, want)
		}
	}
	if got := prefixEnd([]byte("\xff\xff")); got != nil {
		t.Errorf("end of the greatest prefix: %q", got)
	}
}

func TestCeilMillis(t *testing.T) {
	for _, c := range []struct{ micros, want int64 }{{1_000, 1}, {1_001, 2}, {-1_001, -1}} {
		if got := CeilMillis(time.UnixMicro(c.micros)); got != c.want {
			t.Errorf("%d µs: %d ms, want %d", c.micros, got, c.want)
		}
	}
}
