package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
)

// BenchmarkSite measures the engine alone, with 16 callers and 20,000 patients. The server does not
// sync its log, so the figures can only be compared with each other.
func BenchmarkSite(b *testing.B) {
	const patients = 20_000
	key := populate(b, patients)
	site := open(b, shared, key, planOptions)
	system := "https://clinic.example/mrn"
	page := store.Query{Types: []string{patient}, Sort: []store.Sort{{Field: store.SortCreated, Descending: true}}, Count: 20, Total: store.TotalNone}
	search := func(where store.Condition) func(int) error {
		return func(int) error {
			query := page
			query.Where = where
			_, err := site.Search(b.Context(), query)
			return err
		}
	}
	female := "female"
	born := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	year := store.PeriodIs{
		Param: "birthdate", From: store.Bounds{Least: born.UnixMicro(), Most: store.TheEnd},
		Until: store.Bounds{Least: store.TheBeginning, Most: born.AddDate(1, 0, 0).UnixMicro()},
	}
	var made atomic.Int64
	c := clinic{rand.New(rand.NewPCG(1, 1))}
	ops := make([]store.Op, 2000)
	for i := range ops {
		ops[i] = c.patient(i)
	}
	for _, work := range []struct {
		name string
		call func(n int) error
	}{
		{"read", func(n int) error {
			_, err := site.Get(b.Context(), store.Key{Type: patient, ID: fmt.Sprintf("p-%08d", n%patients)})
			return err
		}},
		{"identifier", func(n int) error {
			code := strconv.Itoa(n % patients)
			query := page
			query.Where = store.TokenIs{Param: "identifier", System: &system, Code: &code}
			_, err := site.Search(b.Context(), query)
			return err
		}},
		{"family", search(store.TextIs{Param: "family", Text: "aafam"})},
		{"birthdate-gender", search(store.All{year, store.TokenIs{Param: "gender", Code: &female}})},
		{"newest", search(nil)},
		{"create", func(n int) error {
			op := ops[n%len(ops)]
			op.Key.ID = uuid.NewString()
			_, err := site.Write(b.Context(), []store.Op{op})
			made.Add(1)
			return err
		}},
		{"update", func(n int) error {
			op := ops[(n+7)%len(ops)]
			op.Key.ID = fmt.Sprintf("p-%08d", n%patients)
			op.Method = store.MethodPut
			_, err := site.Write(b.Context(), []store.Op{op})
			return err
		}},
	} {
		b.Run(work.name, func(b *testing.B) {
			b.SetParallelism(8)
			b.ReportAllocs()
			var n atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := work.call(int(n.Add(1))); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "ops/s")
		})
	}
}
