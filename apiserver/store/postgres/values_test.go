package postgres_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// TestOddTexts finds texts that Postgres does not accept unchanged: longer than an index row, with
// zero bytes, and not UTF-8.
func TestOddTexts(t *testing.T) {
	long := strings.Repeat("long ", 3000)
	texts := map[string]string{"long": long, "longer": long + "x", "zero": "a\x00b", "invalid": "a\xff\xfeb", "percent": "100%_\\"}
	site := open(t, shared, uuid.NewString(), postgres.Options{
		Extractor: extractingOthers(func(body []byte) []store.IndexValue {
			var name string
			_ = json.Unmarshal(body, &name)
			return []store.IndexValue{{Param: "name", Value: store.Text{Folded: strings.ToLower(texts[name]), Original: texts[name]}}, {Param: "code", Value: store.Token{System: texts[name], Code: texts[name]}}}
		}),
	})
	for name := range texts {
		body, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		op := store.Op{Kind: store.Put, Key: store.Key{Type: patient, ID: name}, Body: store.Body{JSON: body}}
		if _, err := site.Write(t.Context(), []store.Op{op}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for name, text := range texts {
		also := 0
		if name == "long" {
			also = 1
		}
		for _, test := range []struct {
			condition store.Condition
			want      int
		}{
			{store.TextIs{Param: "name", Match: store.Exactly, Text: text}, 1},
			{store.TextIs{Param: "name", Match: store.StartsExactly, Text: text}, 1 + also},
			{store.TextIs{Param: "name", Match: store.StartsWith, Text: strings.ToLower(text)}, 1 + also},
			{store.TextIs{Param: "name", Match: store.Contains, Text: strings.ToLower(text)}, 1 + also},
			{store.TokenIs{Param: "code", Code: &text}, 1},
			{store.TokenIs{Param: "code", System: &text}, 1},
		} {
			for _, condition := range []store.Condition{test.condition, store.Not{Condition: store.Not{Condition: test.condition}}} {
				page, err := site.Search(t.Context(), store.Query{Types: []string{patient}, Where: condition, Count: 10, Sort: []store.Sort{{Field: store.SortText, Param: "name"}}})
				if err != nil || len(page.Records) != test.want {
					t.Errorf("%s by %.60v: %d records, want %d: %v", name, condition, len(page.Records), test.want, err)
				}
			}
		}
	}
}

// TestOddIDs uses ids that no record can have.
func TestOddIDs(t *testing.T) {
	site := open(t, shared, uuid.NewString(), postgres.Options{})
	for _, id := range []string{"a\x00b", "\xff", strings.Repeat("x", 100_000)} {
		key := store.Key{Type: patient, ID: id}
		if _, err := site.Get(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("get %.10q: %v", id, err)
		}
		if _, err := site.GetVersion(t.Context(), key, 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("get version of %.10q: %v", id, err)
		}
		for _, where := range []store.Condition{store.IDIn{id}, store.RefersTo{Param: "p", To: store.Reference{Type: id, ID: id, Base: id}}, store.RefersToID{Param: "p", ID: id}} {
			page, err := site.Search(t.Context(), store.Query{Types: []string{patient}, Where: where, Count: 1})
			if err != nil || len(page.Records) != 0 {
				t.Errorf("search %T %.10q: %v, %v", where, id, page, err)
			}
		}
	}
}

// TestLoad shows that Load stores the same as Write, and all records or none.
func TestLoad(t *testing.T) {
	site := open(t, shared, uuid.NewString(), postgres.Options{})
	load := []store.Op{counterOp("One", 1), counterOp("two", 2)}
	if err := site.Load(t.Context(), load); err != nil {
		t.Fatal(err)
	}
	record, err := site.Get(t.Context(), store.Key{Type: patient, ID: "one"})
	if err != nil || record.Key.ID != "One" || record.Version != 1 || counted(t, record) != 1 || time.Since(record.Created) > time.Minute {
		t.Errorf("loaded: %+v, %v", record, err)
	}
	if err := site.Load(t.Context(), []store.Op{counterOp("three", 3), counterOp("TWO", 4)}); !errors.Is(err, postgres.ErrExists) {
		t.Errorf("load of what is there: %v", err)
	}
	if _, err := site.Get(t.Context(), store.Key{Type: patient, ID: "three"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("part of a refused load is there: %v", err)
	}
	if err := site.Load(t.Context(), []store.Op{{Kind: store.Delete, Key: store.Key{Type: patient, ID: "one"}}}); err == nil {
		t.Error("a delete was loaded")
	}
	for id, n := range map[string]int{"one": 5, "two": 6} {
		if _, err := site.Write(t.Context(), []store.Op{counterOp(id, n)}); err != nil {
			t.Fatal(err)
		}
	}
	old, fresh := "1", "5"
	for code, want := range map[*string]int{&old: 0, &fresh: 1} {
		page, err := site.Search(t.Context(), store.Query{Types: []string{patient}, Where: store.TokenIs{Param: "code", Code: code}, Count: 3})
		if err != nil || len(page.Records) != want {
			t.Errorf("by code %s: %v, %v", *code, page.Records, err)
		}
	}
}

// TestLargeConditions shows that a condition of any length returns a result,
// *store.TooManyConditionsError, store.ErrQueryTimeout or store.ErrUnavailable.
func TestLargeConditions(t *testing.T) {
	site := open(t, shared, uuid.NewString(), postgres.Options{})
	if _, err := site.Write(t.Context(), []store.Op{counterOp("a", 1)}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{100, 1_000, 100_000} {
		code := "1"
		texts, tokens, references, deep := store.Any{}, store.Any{}, store.Any{}, store.Condition(store.TokenIs{Param: "code", Code: &code})
		for range n {
			texts = append(texts, store.TextIs{Param: "name", Text: uuid.NewString()})
			tokens = append(tokens, store.TokenIs{Param: "code", Code: &code})
			references = append(references, store.RefersTo{Param: "owner", To: store.Reference{Type: patient, ID: uuid.NewString()}})
			deep = store.Any{deep, store.Any{}}
		}
		for name, condition := range map[string]store.Condition{"texts": texts, "tokens": tokens, "references": references, "deep": deep} {
			began := time.Now()
			page, err := site.Search(t.Context(), store.Query{Types: []string{patient}, Where: store.Any{condition, store.IDIn{"a"}}, Count: 1})
			t.Logf("%d %s: %s", n, name, time.Since(began))
			var tooMany *store.TooManyConditionsError
			if nested := n == 100_000 && name == "deep"; errors.As(err, &tooMany) != nested {
				t.Errorf("%d %s: got %.200v, want *store.TooManyConditionsError: %t", n, name, err, nested)
			}
			if err != nil && tooMany == nil && !errors.Is(err, store.ErrQueryTimeout) && !errors.Is(err, store.ErrUnavailable) || err == nil && len(page.Records) != 1 {
				t.Errorf("%d %s: %d records, %.200v", n, name, len(page.Records), err)
			}
			if err != nil && (n == 100 || n == 1_000 && name != "deep") {
				t.Errorf("%d %s: %v", n, name, err)
			}
		}
	}
}
