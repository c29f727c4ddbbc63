package postgres_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// BenchmarkCreate compares creates with their floor, in turns. The floor writes the same rows by
// the same prepared statement, also over a Unix socket. The server syncs its log.
func BenchmarkCreate(b *testing.B) {
	dir, err := os.MkdirTemp("", "paddock-bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	own, err := localpostgres.Start(b.Context(), localpostgres.Options{Dir: dir, Settings: map[string]string{"unix_socket_directories": dir}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = own.Stop() })
	if err := migrate(b.Context(), own.URL(database)); err != nil {
		b.Fatal(err)
	}
	config, err := postgres.Config(own.URL(database))
	if err != nil {
		b.Fatal(err)
	}
	config.ConnConfig.Host = dir
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	site := open(b, pool, uuid.NewString(), planOptions)
	for _, clients := range []int{1, 16, 64} {
		b.Run(strconv.Itoa(clients)+" clients", func(b *testing.B) {
			var floors, creates []float64
			for range 5 {
				floors = append(floors, floor(b, pool, site, clients))
				creates = append(creates, create(b, site, clients))
			}
			b.ReportMetric(median(floors), "floor/s")
			b.ReportMetric(median(creates), "creates/s")
			b.ReportMetric(median(ratios(creates, floors)), "of-floor")
		})
	}
}

// A turn ends after a while, or when what was prepared for it is written.
const (
	benchTurn     = time.Second
	benchPrepared = 6000
)

// perSecond runs calls by a number of clients for one turn.
func perSecond(b *testing.B, clients int, call func(n int) error) float64 {
	b.Helper()
	var n, done atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	for range clients {
		group.Go(func() {
			for time.Since(began) < benchTurn {
				next := int(n.Add(1)) - 1
				if next >= benchPrepared {
					return
				}
				if err := call(next); err != nil {
					b.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	return float64(done.Load()) / time.Since(began).Seconds()
}

var patientsMade atomic.Int64

func newPatient(c clinic) store.Op { return c.patient(int(patientsMade.Add(1)) + 50_000_000) }

func create(b *testing.B, site *postgres.Store, clients int) float64 {
	ops := make([]store.Op, benchPrepared)
	c := clinic{rand.New(rand.NewPCG(1, 1))}
	for i := range ops {
		ops[i] = newPatient(c)
	}
	return perSecond(b, clients, func(n int) error {
		_, err := site.Write(b.Context(), ops[n:n+1])
		return err
	})
}

func floor(b *testing.B, pool *pgxpool.Pool, site *postgres.Store, clients int) float64 {
	type prepared struct {
		sql  string
		args []any
	}
	statements := make([]prepared, benchPrepared)
	c := clinic{rand.New(rand.NewPCG(1, 1))}
	for i := range statements {
		statements[i].sql, statements[i].args = site.Prepared(newPatient(c), time.Now())
	}
	return perSecond(b, clients, func(n int) error {
		var rid, updated int64
		err := pool.QueryRow(b.Context(), statements[n].sql, statements[n].args...).Scan(&rid, &updated)
		return err
	})
}

func ratios(of, to []float64) []float64 {
	all := make([]float64, len(of))
	for i := range of {
		all[i] = of[i] / to[i]
	}
	return all
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
