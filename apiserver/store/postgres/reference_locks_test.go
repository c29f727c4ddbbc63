package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// TestPlansOfReferences limits how many pages writes that depend on other records may touch,
// however many records refer to one.
func TestPlansOfReferences(t *testing.T) {
	const referrers = 20_000
	pool, seen := explaining(t)
	key := uuid.NewString()
	load := open(t, shared, key, postgres.Options{})
	common, free := store.Key{Type: "Organization", ID: "common"}, store.Key{Type: "Organization", ID: "free"}
	var ops []store.Op
	for _, target := range []store.Key{common, free} {
		ops = append(ops, store.Op{Kind: store.Put, Key: target, Body: store.Body{JSON: []byte(`{}`)}})
	}
	for n := range referrers {
		ops = append(ops, referrer(t, store.Key{Type: patient, ID: fmt.Sprintf("p%d", n)}, common))
	}
	if err := load.Load(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Exec(t.Context(), "VACUUM (ANALYZE) res, ix_ref"); err != nil {
		t.Fatal(err)
	}
	site := open(t, pool, key, postgres.Options{})
	remove := func(key store.Key) store.Op {
		return store.Op{Kind: store.Delete, Key: key, Method: store.MethodDelete, Unreferenced: true}
	}
	for _, test := range []struct {
		name    string
		op      store.Op
		ceiling int
		refused bool
	}{
		{"a reference to what many refer to", referrer(t, store.Key{Type: patient, ID: "new"}, common), 150, false},
		{"removal of what many refer to", remove(common), 300, true},
		{"removal of what nothing refers to", remove(free), 150, false},
	} {
		seen.reset()
		_, err := site.Write(t.Context(), []store.Op{test.op})
		var referenced *store.ReferencedError
		if refused := errors.As(err, &referenced); refused != test.refused || err != nil && !refused {
			t.Errorf("%s: %v", test.name, err)
		}
		t.Logf("%s: %d pages", test.name, seen.buffers)
		if seen.buffers > test.ceiling {
			t.Errorf("%s touches %d pages, more than %d:\n%s", test.name, seen.buffers, test.ceiling, seen.texts)
		}
	}
}

// referrer puts a record that refers to another by a parameter and by a mention.
func referrer(t *testing.T, from, to store.Key) store.Op {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"Refs":     map[string][]store.Reference{"organization": {{Type: to.Type, ID: to.ID}}},
		"Mentions": []store.Mention{{Type: to.Type, ID: to.ID}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return store.Op{Kind: store.Put, Key: from, Method: store.MethodPut, Body: store.Body{JSON: body}, Requires: []store.Key{to}}
}

// BenchmarkReferences compares creates that require the records to which they refer with creates
// that do not.
func BenchmarkReferences(b *testing.B) {
	site := open(b, shared, uuid.NewString(), postgres.Options{})
	const targets = 100
	target := func(n int) store.Key { return store.Key{Type: "Organization", ID: strconv.Itoa(n)} }
	for n := range targets {
		if _, err := site.Write(b.Context(), []store.Op{{Kind: store.Put, Key: target(n), Body: store.Body{JSON: []byte(`{}`)}}}); err != nil {
			b.Fatal(err)
		}
	}
	for _, test := range []struct {
		name     string
		among    int
		requires bool
	}{{"ignored", 1, false}, {"enforced, of one", 1, true}, {"enforced, of many", targets, true}} {
		b.Run(test.name, func(b *testing.B) {
			var made atomic.Int64
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					to := target(int(made.Add(1)) % test.among)
					op := store.Op{
						Kind: store.Put, Key: store.Key{Type: patient, ID: uuid.NewString()}, Method: store.MethodPost,
						Body: store.Body{JSON: []byte(`{"Refs":{"organization":[{"Type":"Organization","ID":"` + to.ID + `"}]}}`)},
					}
					if test.requires {
						op.Requires = []store.Key{to}
					}
					if _, err := site.Write(b.Context(), []store.Op{op}); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}
