package indexrow

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
)

// arguments counts what is added to it.
type arguments struct{ values []any }

func (a *arguments) Arg(value any) string {
	a.values = append(a.values, value)
	return "$" + strconv.Itoa(len(a.values)+1)
}

func testHasher(t *testing.T) Hasher {
	t.Helper()
	hash, err := NewHasher([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func indexerOf(t *testing.T, entries ...store.IndexValue) *Indexer {
	t.Helper()
	return &Indexer{Hash: testHasher(t), Extractor: extractor{store.NoExtractor, entries}}
}

// extractor finds the same entries and the label vip in every record.
type extractor struct {
	store.Extractor
	entries []store.IndexValue
}

func (x extractor) Extract(string, []byte) []store.IndexValue { return x.entries }

func (extractor) Labels(string, []store.IndexValue) store.Labels {
	return store.Labels{Names: []string{"vip"}}
}

func (extractor) IsFacet(param string) bool { return param == "gender" }

func (extractor) CommonCodes(string) []store.CommonCode {
	return []store.CommonCode{{Param: "gender", Token: store.Token{System: "g", Code: "female"}}, {Param: "gender", Token: store.Token{System: "g", Code: "male"}}}
}

func (extractor) Parts(_, param string) []string {
	if param != "telecom" {
		return nil
	}
	return []string{"phone"}
}

func (extractor) Ordinal(_, param string) int {
	return slices.Index([]string{"birthdate", "family"}, param)
}

func TestRowsOfEachKind(t *testing.T) {
	x := indexerOf(t,
		store.IndexValue{Param: "identifier", Value: store.Token{System: "s", Code: "1"}},
		store.IndexValue{Param: "identifier", Value: store.Token{System: "s", Code: "1"}},
		store.IndexValue{Param: "composite", Value: store.Pair{First: store.Token{System: "s", Code: "1"}, Second: store.Token{System: "t", Code: "2"}}},
		store.IndexValue{Param: "family", Value: store.Text{Folded: "smith", Original: "Smith"}},
		store.IndexValue{Param: "birthdate", Value: store.Period{From: 1, Until: 2}},
		store.IndexValue{Param: "near", Value: store.Point{Latitude: 1, Longitude: 2}},
		store.IndexValue{Param: "organization", Value: store.Reference{Type: "Organization", ID: "1"}},
		store.IndexValue{Param: "link", Value: store.Reference{ID: "http://elsewhere"}},
		store.IndexValue{Param: "", Value: store.Mention{Type: "Organization", ID: "2"}},
	)
	rows := x.Rows("Patient", store.Body{})
	got := map[string]int{
		"tokens": len(rows.tokens), "texts": len(rows.texts), "periods": len(rows.periods), "points": len(rows.points),
		"references": len(rows.references), "paths": len(rows.Paths), "labels": len(rows.Labels),
	}
	// A pair has 16 forms. The equal tokens have one row. A mention has a row, but no path.
	want := map[string]int{"tokens": 17, "texts": 1, "periods": 1, "points": 1, "references": 3, "paths": 1, "labels": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if again := x.Rows("Patient", store.Body{}); again.Sum() != rows.Sum() {
		t.Errorf("checksum of the same record: %d, then %d", rows.Sum(), again.Sum())
	}
}

// TestSum shows that the checksum of a record remains as it is stored, as its rows count as those of another
// extraction otherwise.
func TestSum(t *testing.T) {
	text := func(param, folded, original string) store.IndexValue {
		return store.IndexValue{Param: param, Value: store.Text{Folded: folded, Original: original}}
	}
	rows := indexerOf(t,
		store.IndexValue{Param: "gender", Value: store.Token{System: "g", Code: "female"}},
		store.IndexValue{Param: "identifier", Value: store.Token{System: "s", Code: "2"}},
		store.IndexValue{Param: "identifier", Value: store.Token{System: "s", Code: "1"}},
		store.IndexValue{Param: "identifier", Value: store.Token{System: "r", Code: "1"}},
		store.IndexValue{Param: "composite", Value: store.Pair{First: store.Token{System: "s", Code: "1"}, Second: store.Token{Code: "2"}}},
		text("name", "smith", "Smith"), text("name", "smith", "SMITH"), text("name", "ada", "ada"), text("family", "smith", "Smith"),
		text("note", strings.Repeat("x", MaxIndexedBytes+1), "X"),
		store.IndexValue{Param: "birthdate", Value: store.Period{From: 1, Until: 2}},
		store.IndexValue{Param: "birthdate", Value: store.Period{From: -1, Until: 2}},
		store.IndexValue{Param: "near", Value: store.Point{Latitude: 1, Longitude: 2}},
		store.IndexValue{Param: "organization", Value: store.Reference{Type: "Organization", ID: "1"}},
		store.IndexValue{Param: "link", Value: store.Reference{ID: "http://elsewhere"}},
		store.IndexValue{Param: "", Value: store.Mention{Type: "Organization", ID: "2"}},
	).Rows("Patient", store.Body{})
	if got, want := rows.Sum(), int64(-4667379406637792053); got != want {
		t.Errorf("checksum: %d, want %d", got, want)
	}
}

// A database with ix_str gets the rows of this table too, also in a batch.
func TestWideTexts(t *testing.T) {
	rows := func(family string) Rows {
		x := indexerOf(t, store.IndexValue{Param: "family", Value: store.Text{Folded: family, Original: family}})
		x.Earlier = func() Earlier { return Earlier{WideTexts: true} }
		return x.Rows("Patient", store.Body{})
	}
	before, after := rows("smith"), rows("jones")
	added := after.Without(&before)
	batch := NewBatch(1)
	batch.Add(1, &added)
	if sql := strings.Join(batch.Insert(&arguments{}, "r", "rids"), ","); len(added.texts) != 1 || !strings.Contains(sql, "INSERT INTO ix_str") {
		t.Errorf("added: %+v, by %s", added.texts, sql)
	}
}

// TestPresence shows that each parameter with a number has a bit in present, also one whose value has
// nothing to compare.
func TestPresence(t *testing.T) {
	for param, want := range map[string]int64{"birthdate": 1, "family": 2, "name": 0} {
		x := indexerOf(t, store.IndexValue{Param: param})
		if got := x.Rows("Patient", store.Body{}).Present; got != want|HasCommonBits {
			t.Errorf("present of a record with %s is %b, want %b", param, got, want)
		}
	}
	x := indexerOf(t, store.IndexValue{Param: "family"}, store.IndexValue{Param: "name"})
	family, name := x.Hash.Param("Patient", "family"), x.Hash.Param("Patient", "name")
	now := x.Rows("Patient", store.Body{})
	x.Earlier = func() Earlier { return Earlier{WideTexts: true, AllTokens: true} }
	before := x.Rows("Patient", store.Body{})
	if got, want := now.Marks, []int64{name}; !slices.Equal(got, want) {
		t.Errorf("marks are %v, want the key of the parameter without a bit, %v", got, want)
	}
	if got := before.Marks; len(got) != 2 || !slices.Contains(got, family) || !slices.Contains(got, name) {
		t.Errorf("marks that earlier releases read are %v, want the keys of both parameters, %d and %d", got, family, name)
	}
	if now.Sum() != before.Sum() || now.Present != before.Present {
		t.Errorf("checksum and bits are %d and %b, but %d and %b while earlier releases read the record", now.Sum(), now.Present, before.Sum(), before.Present)
	}
	for ordinal, want := range map[int]int64{-1: 0, 0: 1, 57: 1 << 57, 58: 0} {
		if got := PresenceBit(ordinal); got != want {
			t.Errorf("bit of the parameter %d: %x, want %x", ordinal, got, want)
		}
	}
}

// Common codes, and tokens of a union that a part has, are stored where earlier releases search for them,
// and removed also where they may be left. The checksum does not depend on that.
func TestTokensOfEarlierReleases(t *testing.T) {
	token := func(param, system, code string) store.IndexValue {
		return store.IndexValue{Param: param, Value: store.Token{System: system, Code: code}}
	}
	x := indexerOf(t, token("gender", "g", "male"), token("gender", "g", "other"), token("telecom", "phone", "1"), token("phone", "phone", "1"), token("telecom", "fax", "1"))
	statement := func(write func(r *Rows, st Arguments) []string) (keys []int64, table string) {
		rows := x.Rows("Patient", store.Body{})
		st := &arguments{}
		table, _, _ = strings.Cut(write(&rows, st)[0], " AS ")
		for _, value := range st.values {
			if all, ok := value.([]int64); ok && slices.Contains(all, x.Hash.Param("Patient", "gender")) {
				keys = all
			}
		}
		return keys, table
	}
	insert := func(r *Rows, st Arguments) []string { return r.Insert(st, "r", "w") }
	insertBatch := func(r *Rows, st Arguments) []string {
		var b Batch
		b.Add(1, r)
		return b.Insert(st, "w", "w.rids")
	}
	remove := func(r *Rows, st Arguments) []string { return r.Remove(st, 7, "w") }
	for _, c := range []struct {
		name  string
		write func(r *Rows, st Arguments) []string
		// rows and earlier are the numbers of rows without and with the tables of earlier releases.
		rows, earlier int
	}{{"insert", insert, 3, 5}, {"insert a batch", insertBatch, 3, 5}, {"remove", remove, 5, 5}} {
		x.Earlier = nil
		if keys, table := statement(c.write); len(keys) != c.rows || !strings.HasSuffix(table, "_ix_code") {
			t.Errorf("%s: %d rows of %s, want %d of ix_code", c.name, len(keys), table, c.rows)
		}
		x.Earlier = func() Earlier { return Earlier{AllTokens: true} }
		if keys, table := statement(c.write); len(keys) != c.earlier || !strings.HasSuffix(table, "_ix_tok") {
			t.Errorf("%s: %d rows of %s for earlier releases, want %d of ix_tok", c.name, len(keys), table, c.earlier)
		}
	}
	before := x.Rows("Patient", store.Body{})
	x.Earlier = nil
	now := x.Rows("Patient", store.Body{})
	if male := int64(1 << 61); now.Sum() != before.Sum() || now.Present != before.Present || now.Present != HasCommonBits|male {
		t.Errorf("checksum and bits are %d and %x, but %d and %x for earlier releases, want the bit of the second code, %x", now.Sum(), now.Present, before.Sum(), before.Present, male)
	}
}

func TestLongTexts(t *testing.T) {
	long := strings.Repeat("x", MaxIndexedBytes)
	x := indexerOf(t, store.IndexValue{Param: "name", Value: store.Text{Folded: long + "a", Original: long + "a"}},
		store.IndexValue{Param: "name", Value: store.Text{Folded: long + "b", Original: long + "b"}})
	rows := x.Rows("Patient", store.Body{}).texts
	if len(rows) != 2 || rows[0].val != long || rows[1].val != long || rows[0].more == rows[1].more || !rows[0].hasWhole || rows[0].hasOrig {
		t.Errorf("rows of two texts with the same prefix: %+v", rows)
	}
}

// Of each parameter, the first text in each direction is marked, and all texts have the facets.
func TestEndMarksAndFacets(t *testing.T) {
	x := indexerOf(t, store.IndexValue{Param: "gender", Value: store.Token{Code: "female"}},
		store.IndexValue{Param: "name", Value: store.Text{Folded: "b", Original: "b"}},
		store.IndexValue{Param: "name", Value: store.Text{Folded: "a", Original: "a"}},
		store.IndexValue{Param: "name", Value: store.Text{Folded: "c", Original: "c"}})
	code := "female"
	facet := FacetBit(x.Hash.FacetMark(x.Hash.Param("Patient", "gender"), store.TokenIs{Code: &code}))
	var got []bool
	for _, row := range x.Rows("Patient", store.Body{}).texts {
		got = append(got, row.facets&EndMark(false) != 0, row.facets&EndMark(true) != 0, row.facets&facet != 0)
	}
	want := []bool{true, false, true, false, false, true, false, true, true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("first ascending, first descending, facet of a, b, c (-want +got):\n%s", diff)
	}
}

func TestWithout(t *testing.T) {
	family := func(name string) store.IndexValue {
		return store.IndexValue{Param: "family", Value: store.Text{Folded: name, Original: name}}
	}
	birth := store.IndexValue{Param: "birthdate", Value: store.Period{From: 1, Until: 2}}
	before, after := indexerOf(t, family("smith"), birth).Rows("Patient", store.Body{}), indexerOf(t, family("jones"), birth).Rows("Patient", store.Body{})
	added := after.Without(&before)
	if len(added.indexed) != 1 || added.indexed[0].val != "jones" || len(added.periods) != 0 {
		t.Errorf("added: %+v", added)
	}
	st := &arguments{}
	sql := append(added.Insert(st, "r", "w"), added.Remove(st, 7, "w")...)
	if len(sql) != 2 || !strings.HasPrefix(sql[0], "i_ix_text AS (INSERT INTO ix_text (site, rid, key, val, facets) SELECT $1, r, ") ||
		!strings.HasPrefix(sql[1], "d_ix_text AS (DELETE FROM ix_text x ") || len(st.values) != 3+1+2 {
		t.Errorf("statements with %d arguments: %q", len(st.values), sql)
	}
}

// A row with the same value but other facets is another row.
func TestWithoutOtherFacets(t *testing.T) {
	rows := func(gender string) Rows {
		return indexerOf(t, store.IndexValue{Param: "family", Value: store.Text{Folded: "smith", Original: "smith"}},
			store.IndexValue{Param: "gender", Value: store.Token{Code: gender}}).Rows("Patient", store.Body{})
	}
	before, after := rows("male"), rows("female")
	if added, gone := after.Without(&before), before.Without(&after); len(added.indexed) != 1 || len(gone.indexed) != 1 {
		t.Errorf("added: %+v, gone: %+v", added.indexed, gone.indexed)
	}
	if same := rows("male"); len(same.Without(&before).indexed) != 0 {
		t.Errorf("the same rows count as added")
	}
}

func TestCopyRows(t *testing.T) {
	one := indexerOf(t, store.IndexValue{Param: "birthdate", Value: store.Period{From: 1, Until: 2}}).Rows("Patient", store.Body{})
	copied := CopyRows(3, []int64{10, 11}, []Rows{one, one})
	key, facets := testHasher(t).Param("Patient", "birthdate"), leastValue|greatestValue
	want := []CopiedRows{{
		Table: "ix_date", Columns: []string{"site", "rid", "key", "lo", "hi", "facets"},
		Rows: [][]any{{int32(3), int64(10), key, int64(1), int64(2), facets}, {int32(3), int64(11), key, int64(1), int64(2), facets}},
	}}
	if diff := cmp.Diff(want, copied); diff != "" {
		t.Errorf("copied (-want +got):\n%s", diff)
	}
}

func TestHashes(t *testing.T) {
	h := testHasher(t)
	if h.Self("Patient", "A") != h.Self("Patient", "a") {
		t.Error("ids differ by case")
	}
	if h.Param("a", "bc") == h.Param("ab", "c") {
		t.Error("parts are not separated")
	}
	if target, base := h.Target(store.Reference{Type: "Patient", ID: "a"}); target != h.Self("Patient", "a") || base != 0 {
		t.Errorf("own record: target %d, base %d", target, base)
	}
	if _, err := NewHasher(make([]byte, HashKeySize-1)); err == nil {
		t.Error("a short key has no error")
	}
}

func TestRids(t *testing.T) {
	var source RidSource
	source.Seed()
	created := time.Date(2026, 2, 3, 4, 5, 6, 7e6, time.UTC)
	first, second := source.Next(created), source.Next(created)
	if first == second || !CreatedAt(first).Equal(created) || !CreatedAt(second).Equal(created) || first < RidFloor(created) {
		t.Errorf("rids %d and %d of %s, least %d", first, second, created, RidFloor(created))
	}
}
