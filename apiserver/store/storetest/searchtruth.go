package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// populateTypes makes random writes to records of all types, which refer to each other, and returns
// the live records.
func populateTypes(t *testing.T, s store.Store, d dice, writes int) *truth {
	t.Helper()
	live := map[store.Key]store.Record{}
	for range writes {
		k := store.Key{Type: pick(d, recordTypes...), ID: d.id()}
		op := store.Op{Kind: store.Put, Key: k, Method: store.MethodPut, Body: d.values().body(t)}
		if d.IntN(7) == 0 {
			op = store.Op{Kind: store.Delete, Key: k, Method: store.MethodDelete}
		}
		result := write(t, s, op)
		if op.Kind == store.Delete {
			delete(live, k)
		} else {
			live[k] = result.Record
		}
	}
	all := make([]store.Record, 0, len(live))
	for _, r := range live {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b store.Record) int {
		return cmp.Or(cmp.Compare(a.Key.Type, b.Key.Type), cmp.Compare(a.Key.ID, b.Key.ID))
	})
	return newTruth(all)
}

// condition returns a random condition, nested at most depth levels.
func (d dice) condition(all []indexedRecord, depth int) store.Condition {
	if depth > 0 && d.IntN(2) == 0 {
		part := func() store.Condition { return d.condition(all, depth-1) }
		switch d.IntN(5) {
		case 0:
			return store.All{part(), part()}
		case 1:
			return store.Any{part(), part()}
		case 2:
			return store.Not{Condition: part()}
		case 3:
			return store.Chain{Param: pick(d, "owner", "partof", ""), Type: pick(d, recordTypes...), Where: part()}
		default:
			return store.ReferredBy{Type: pick(d, recordTypes...), Param: pick(d, "owner", "partof"), Where: part()}
		}
	}
	return d.leaf(all)
}

func (d dice) tokenIs(param string) store.TokenIs {
	token := d.token()
	is := store.TokenIs{Param: param, System: &token.System, Code: &token.Code}
	switch {
	case d.IntN(3) == 0:
		is.System = nil
	case token.System != "" && d.IntN(3) == 0:
		is.Code = nil
	}
	return is
}

// contactIs returns a condition on the parameter union or part.
func (d dice) contactIs() store.TokenIs {
	token := d.contact()
	return store.TokenIs{Param: pick(d, union, part), System: pick(d, nil, &token.System), Code: &token.Code}
}

// facetIs returns a condition on the parameter facet.
func (d dice) facetIs() store.TokenIs {
	token := d.gender()
	return store.TokenIs{Param: facet, System: pick(d, nil, &token.System, new("others")), Code: &token.Code}
}

func (d dice) bounds() store.Bounds {
	b := store.Bounds{Least: d.time(), Most: d.time() + 5000}
	switch d.IntN(3) {
	case 0:
		b.Least = store.TheBeginning
	case 1:
		b.Most = store.TheEnd
	}
	return b
}

// singlePeriodIn returns a condition with 1 to 3 areas, with or without gaps between them.
func (d dice) singlePeriodIn() store.SinglePeriodIn {
	is := store.SinglePeriodIn{Param: single}
	least := pick(d, store.TheBeginning, d.time()-1000)
	for range 1 + d.IntN(3) {
		from := store.Bounds{Least: least, Most: max(least, 0) + d.time()}
		is.Areas = append(is.Areas, store.PeriodArea{From: from, Until: pick(d, store.Unbounded, d.bounds())})
		least = from.Most + 1 + pick(d, 0, d.time())
	}
	if d.IntN(3) == 0 {
		is.Areas[len(is.Areas)-1].From.Most = store.TheEnd
	}
	return is
}

func (d dice) hasLabel() store.Condition {
	one, other := store.HasLabel(d.token().Code), store.HasLabel(d.token().Code)
	return pick[store.Condition](d, one, store.Any{one, other})
}

func (d dice) linksTo() store.LinksTo {
	return store.LinksTo{
		Param: pick(d, linkParam, linkParam, "partof"), Type: pick(d, recordTypes...),
		Where: pick[store.Condition](d, store.All{}, d.hasLabel(), store.Not{Condition: d.hasLabel()}, store.Any{}),
	}
}

func (d dice) leaf(all []indexedRecord) store.Condition {
	switch d.IntN(12) {
	case 0:
		ids := store.IDIn{}
		for range d.IntN(20) {
			ids = append(ids, pick(d, d.id(), "R3", "nobody"))
		}
		return ids
	case 1:
		return store.UpdatedIn{From: all[d.IntN(len(all))].Updated, Until: pick(d, time.Time{}, all[d.IntN(len(all))].Updated)}
	case 2:
		return store.Present{Param: pick(d, "code", "name", "owner", "date", "near", "pair", "nothing")}
	case 3, 4:
		many := store.Any{}
		for range 1 + d.IntN(12) {
			many = append(many, d.tokenIs(pick(d, "code", "identifier")))
		}
		if d.IntN(2) == 0 {
			for range 1 + d.IntN(3) {
				many = append(many, d.facetIs(), d.contactIs())
			}
		}
		return pick[store.Condition](d, d.tokenIs("code"), d.tokenIs("identifier"), d.facetIs(), d.contactIs(), many, many[len(many)-1:])
	case 5:
		return store.PairIs{Param: "pair", First: d.tokenIs(""), Second: d.tokenIs("")}
	case 6:
		text := d.text()
		many := store.Any{}
		for range 1 + d.IntN(4) {
			many = append(many, store.TextIs{Param: pick(d, "name", "city"), Match: store.StartsWith, Text: d.text().Folded})
		}
		return pick[store.Condition](d, many, store.TextIs{Param: "name", Match: store.StartsWith, Text: text.Folded[:1]},
			store.TextIs{Param: "city", Match: store.StartsWith, Text: text.Folded},
			store.TextIs{Param: "name", Match: store.Contains, Text: pick(d, "n", "%", "_")},
			store.TextIs{Param: "name", Match: store.Exactly, Text: text.Original},
			store.TextIs{Param: "city", Match: store.StartsExactly, Text: text.Original})
	case 7:
		return store.PeriodIs{Param: pick(d, "date", "birthdate"), From: d.bounds(), Until: d.bounds()}
	case 8:
		return store.Near{Param: "near", Center: d.point(), Meters: float64(d.IntN(400)) * 1000}
	case 9:
		return store.RefersAround{Param: "partof", To: store.Reference{Base: pick(d, "", ownBase), Type: pick(d, recordTypes...), ID: d.id()}, Above: d.IntN(2) == 0}
	case 10:
		return d.singlePeriodIn()
	default:
		many := store.Any{}
		for range 1 + d.IntN(4) {
			many = append(many, store.RefersTo{Param: pick(d, "owner", "partof"), To: d.reference()})
		}
		return pick[store.Condition](d, many[0], many)
	}
}

func (d dice) query(all []indexedRecord) store.Query {
	q := store.Query{Types: []string{pick(d, recordTypes...)}, Count: 1 + d.IntN(9), Bases: pick(d, nil, []string{ownBase}), MaxIncluded: 1000}
	if d.IntN(5) == 0 {
		q.Types = []string{"Patient", "Group"}
	}
	if d.IntN(8) > 0 {
		q.Where = d.condition(all, 2)
	}
	if d.IntN(4) == 0 {
		q.ByType = map[string]store.Condition{pick(d, recordTypes...): d.condition(all, 1)}
	}
	for range d.IntN(3) {
		sort := store.Sort{Field: pick(d, store.SortCreated, store.SortUpdated, store.SortID, store.SortText, store.SortPeriod), Descending: d.IntN(2) == 0}
		if sort.Field == store.SortText || sort.Field == store.SortPeriod {
			sort.Param = pick(d, "name", "city", "date", "birthdate", single, single, "nothing")
		}
		q.Sort = append(q.Sort, sort)
	}
	if d.IntN(3) == 0 {
		q.Access = store.Access{"Patient": pick(d, d.leaf(all), d.access()), "Group": pick[store.Condition](d, store.All{}, d.access())}
	}
	for range d.IntN(3) {
		q.Includes = append(q.Includes, store.Include{
			Reverse: d.IntN(2) == 0, Type: pick(d, "", "Patient", "Group"), Param: pick(d, "", "owner", "partof"),
			Target: pick(d, "", "Patient"), Iterate: d.IntN(2) == 0,
		})
	}
	return q
}

// testSearchTruth compares pages, order, totals and includes of random queries with the reference
// evaluator.
func testSearchTruth(t *testing.T, open Open) {
	s, _ := open(t)
	d := dice{random()}
	truth := populateTypes(t, s, d, 220)
	for n := range 2000 {
		q := d.query(truth.records)
		if comparePages(t, s, truth, q, fmt.Sprintf("query %d %+v", n, q)); t.Failed() {
			return
		}
	}
}

// testSearchRanges is testSearchTruth for queries that restrict the value by which they are sorted.
// That value is the time of update, a period of which records have at most one, or a period of
// which records may have several.
func testSearchRanges(t *testing.T, open Open) {
	s, _ := open(t)
	d := dice{random()}
	truth := populateTypes(t, s, d, 220)
	updated := func() time.Time { return truth.records[d.IntN(len(truth.records))].Updated }
	for n := range 800 {
		q := d.query(truth.records)
		first := pick(d, store.Sort{Field: store.SortUpdated}, store.Sort{Field: store.SortPeriod, Param: single}, store.Sort{Field: store.SortPeriod, Param: "date"})
		first.Descending = d.IntN(2) == 0
		var where store.All
		switch first.Param {
		case "":
			where = store.All{store.UpdatedIn{From: pick(d, updated(), time.Time{}), Until: updated().Add(pick(d, 0, time.Millisecond, time.Second))}}
		case single:
			where = store.All{d.singlePeriodIn()}
		default:
			where = store.All{store.PeriodIs{Param: "date", From: d.bounds(), Until: store.Unbounded}, store.PeriodIs{Param: "date", From: store.Unbounded, Until: d.bounds()}}
		}
		if d.IntN(2) == 0 {
			where = append(where, d.condition(truth.records, 1))
		}
		q.Where = where
		if d.IntN(4) > 0 {
			q.Sort = append([]store.Sort{first}, q.Sort...)
		}
		if comparePages(t, s, truth, q, fmt.Sprintf("query %d %+v", n, q)); t.Failed() {
			return
		}
	}
}

// comparePages compares all pages of a query with the reference evaluator.
func comparePages(t *testing.T, s store.Store, truth *truth, q store.Query, what string) {
	t.Helper()
	want := truth.matches(q)
	for from := 0; ; from += q.Count {
		page := search(t, s, q)
		until := min(from+q.Count, len(want))
		alignTies(q, want[from:], page.Records)
		same(t, what, keysOf(page.Records), keysOf(records(want[from:until])))
		got := keysOf(page.Included)
		slices.SortFunc(got, byKey)
		included := truth.included(q, want[from:until])
		slices.SortFunc(included, byKey)
		same(t, "includes of "+what, got, included)
		if from == 0 {
			same(t, "total of "+what, page.Total, int64(len(want)))
		}
		same(t, "end of "+what, page.Next == nil, until == len(want))
		if page.Next == nil || t.Failed() {
			return
		}
		q.After = page.Next
	}
}

func byKey(a, b store.Key) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID)) }

func records(all []indexedRecord) []store.Record {
	plain := make([]store.Record, len(all))
	for i, r := range all {
		plain[i] = r.Record
	}
	return plain
}

func keysOf(all []store.Record) []store.Key {
	keys := make([]store.Key, len(all))
	for i, r := range all {
		keys[i] = r.Key
	}
	return keys
}

// testSearchIncludes tests MaxIncluded.
func testSearchIncludes(t *testing.T, open Open) {
	s, _ := open(t)
	v := values{Refs: map[string][]store.Reference{}}
	for i := range 6 {
		id := fmt.Sprint(i)
		write(t, s, store.Op{Kind: store.Put, Key: store.Key{Type: "Group", ID: id}, Method: store.MethodPut, Body: values{}.body(t)})
		v.Refs["owner"] = append(v.Refs["owner"], store.Reference{Type: "Group", ID: id})
	}
	write(t, s, put("p", v.body(t)))
	for limit, cut := range map[int]bool{0: true, 5: true, 6: false, 7: false} {
		page := search(t, s, store.Query{Types: patients, Count: 1, MaxIncluded: limit, Includes: []store.Include{{Param: "owner"}}})
		same(t, fmt.Sprintf("at most %d", limit), []any{len(page.Included), page.IncludedCut}, []any{min(limit, 6), cut})
	}
}

// testSearchAccess shows that a search with hidden records returns what it returns after they are
// purged, whether they are hidden by a value or by a label.
func testSearchAccess(t *testing.T, open Open) {
	for _, secret := range []store.Condition{store.TokenIs{Param: "code", System: nil, Code: new("a")}, store.HasLabel("a")} {
		compareHiddenWithPurged(t, open, secret)
	}
}

func compareHiddenWithPurged(t *testing.T, open Open, secret store.Condition) {
	s, other := open(t)
	d := dice{random()}
	truth := populateTypes(t, s, d, 150)
	access := store.Access{"Patient": store.Not{Condition: secret}, "Group": store.Not{Condition: secret}}
	queries := make([]store.Query, 400)
	with := make([]store.Page, len(queries))
	for i := range queries {
		q := d.query(truth.records)
		q.Access, q.Count, q.Total = access, 3, pick(d, store.TotalAccurate, store.TotalWhenFree)
		queries[i], with[i] = q, search(t, s, q)
	}
	for _, r := range truth.records {
		if _, listed := access[r.Key.Type]; !listed || truth.holds(store.Query{}, r, secret) {
			write(t, s, store.Op{Kind: store.Purge, Key: r.Key})
		}
	}
	for i, q := range queries {
		without := search(t, s, q)
		what := fmt.Sprintf("query %d %+v", i, q)
		same(t, what, keysOf(with[i].Records), keysOf(without.Records))
		same(t, "total of "+what, with[i].Total, without.Total)
		same(t, "includes of "+what, keysOf(with[i].Included), keysOf(without.Included))
	}
	eventually(t, "the purges on the other replica", func() bool {
		return search(t, other, store.Query{Types: []string{"Person"}, Total: store.TotalAccurate}).Total == 0
	})
}

func testAmbiguousReferences(t *testing.T, open Open) {
	s, _ := open(t)
	refer := func(id string, to ...store.Reference) {
		write(t, s, put(id, values{Refs: map[string][]store.Reference{"owner": to}}.body(t)))
	}
	refer("a", store.Reference{Type: "Group", ID: "1"})
	refer("b", store.Reference{Type: "Group", ID: "2"}, store.Reference{Type: "Person", ID: "1"})
	refer("c", store.Reference{Base: otherBase, Type: "Person", ID: "2"})
	q := func(id string, types ...string) store.Query {
		return store.Query{Types: patients, Count: 10, Where: store.RefersToID{Param: "owner", ID: id, Types: types}}
	}
	same(t, "one type", allIDs(t, s, q("1", "Group")), []string{"a"})
	same(t, "one type matches", allIDs(t, s, q("2", "Group", "Person")), []string{"b"})
	same(t, "any type", allIDs(t, s, q("2")), []string{"b"})
	byType := store.Query{Types: patients, Count: 10, ByType: map[string]store.Condition{patient: q("2").Where}}
	same(t, "any type, by type", allIDs(t, s, byType), []string{"b"})
	same(t, "none", allIDs(t, s, q("3", "Group", "Person")), []string{})
	for _, query := range []store.Query{q("1", "Group", "Person"), q("1")} {
		var ambiguous *store.AmbiguousError
		if _, err := s.Search(t.Context(), query); !errors.As(err, &ambiguous) {
			t.Fatalf("two types: %v", err)
		}
		same(t, "the types named", ambiguous.Types, []string{"Group", "Person"})
	}
	hidden := q("1", "Group", "Person")
	hidden.Access = store.Access{"Patient": store.IDIn{"a"}}
	same(t, "the other is hidden", allIDs(t, s, hidden), []string{"a"})
}

// testHierarchies tests RefersAround on a chain of records, on a cycle, and on a chain with a
// hidden record.
func testHierarchies(t *testing.T, open Open) {
	s, _ := open(t)
	part := func(id, of string) {
		v := values{Refs: map[string][]store.Reference{"partof": {{Type: patient, ID: of}}}}
		write(t, s, put(id, v.body(t)))
	}
	write(t, s, put("a", values{}.body(t)))
	part("b", "a")
	part("c", "b")
	part("d", "c")
	part("x", "y")
	part("y", "x")
	around := func(id string, above bool) store.Query {
		return store.Query{
			Types: patients, Count: 10, Sort: []store.Sort{{Field: store.SortID}},
			Where: store.RefersAround{Param: "partof", To: store.Reference{Type: patient, ID: id}, Above: above},
		}
	}
	same(t, "below the top", allIDs(t, s, around("a", false)), []string{"b", "c", "d"})
	same(t, "below the middle", allIDs(t, s, around("c", false)), []string{"d"})
	same(t, "above the bottom", allIDs(t, s, around("d", true)), []string{"b", "c", "d"})
	same(t, "above the top", allIDs(t, s, around("a", true)), []string{"b"})
	same(t, "a circle from below", allIDs(t, s, around("x", false)), []string{"x", "y"})
	same(t, "a circle from above", allIDs(t, s, around("x", true)), []string{"x", "y"})
	same(t, "around nobody", allIDs(t, s, around("nobody", false)), []string{})
	hidden := func(id, of string, above bool) []string {
		q := around(of, above)
		q.Access = store.Access{patient: store.Not{Condition: store.IDIn{id}}}
		return allIDs(t, s, q)
	}
	same(t, "below a, with b hidden", hidden("b", "a", false), []string{})
	same(t, "below b, with c hidden", hidden("c", "b", false), []string{})
	same(t, "above d, with c hidden", hidden("c", "d", true), []string{"d"})
	same(t, "above c, with b hidden", hidden("b", "c", true), []string{"c", "d"})
}
