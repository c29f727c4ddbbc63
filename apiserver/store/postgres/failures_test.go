package postgres_test

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/storetest"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

const (
	// callTimeout is the timeout of calls of a broken site. slack is added for a busy machine.
	callTimeout = 500 * time.Millisecond
	slack       = 2 * time.Second
	connections = 6
	// maxConnections is the number of connections that the server accepts.
	maxConnections = 12
)

// broken is a site whose server or network tests break. It is opened once.
type broken struct {
	server *localpostgres.Server
	proxy  *proxy
	pool   *pgxpool.Pool
	site   *postgres.Store
	n      atomic.Int64
	// occupied are connections of other clients.
	occupied []*pgx.Conn
}

func breakIt(t *testing.T) *broken {
	t.Helper()
	b := &broken{server: startServer(t, map[string]string{
		"shared_buffers": "32MB", "max_connections": strconv.Itoa(maxConnections), "superuser_reserved_connections": "0",
	})}
	var through string
	b.proxy, through = newProxy(t, b.server.URL(database))
	config, err := postgres.Config(through)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = connections
	if b.pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.pool.Close)
	key := uuid.NewString()
	await(t, "open", func() (err error) {
		b.site, err = postgres.Open(t.Context(), b.pool, key, postgres.Options{Extractor: storetest.Extractor{}, QueryTimeout: callTimeout})
		return err
	})
	for name, call := range b.writes(t) {
		await(t, name, call)
	}
	return b
}

// large returns writes of bodies that do not fit into the free space of existing files.
func (b *broken) large(t *testing.T) calls {
	op := func() store.Op {
		op := b.fresh(uuid.NewString())
		op.Body.JSON = []byte(`{"Salt":1,"Filler":"` + noise(200<<10) + `"}`)
		return op
	}
	return calls{
		"large": func() error { _, err := b.site.Write(t.Context(), []store.Op{op()}); return err },
		"load":  func() error { return b.site.Load(t.Context(), []store.Op{op()}) },
	}
}

type calls map[string]func() error

// fresh returns an operation that changes something.
func (b *broken) fresh(id string) store.Op { return counterOp(id, int(b.n.Add(1))) }

// reads are the calls that read, by every kind of statement.
func (b *broken) reads(t *testing.T) calls {
	search := func(q store.Query) func() error {
		q.Types, q.Count = []string{patient}, 1
		return func() error { _, err := b.site.Search(t.Context(), q); return err }
	}
	return calls{
		"get": func() error { _, err := b.site.Get(t.Context(), store.Key{Type: patient, ID: "a"}); return err },
		"version": func() error {
			_, err := b.site.GetVersion(t.Context(), store.Key{Type: patient, ID: "a"}, 1)
			return err
		},
		"history":         func() error { _, err := b.site.History(t.Context(), store.HistoryQuery{Count: 1}); return err },
		"search":          search(store.Query{}),
		"search by time":  search(store.Query{Sort: []store.Sort{{Field: store.SortUpdated}}}),
		"page by number":  search(store.Query{Skip: 1, Sort: []store.Sort{{Field: store.SortID}}}),
		"search by chain": search(store.Query{Where: store.Chain{Type: patient, Where: store.All{}}}),
	}
}

func (b *broken) writes(t *testing.T) calls {
	write := func(ops func() []store.Op) func() error {
		return func() error { _, err := b.site.Write(t.Context(), ops()); return err }
	}
	return calls{
		"write": write(func() []store.Op { return []store.Op{b.fresh("a")} }),
		"create": write(func() []store.Op {
			op := b.fresh(uuid.NewString())
			op.Method = store.MethodPost
			return []store.Op{op}
		}),
		"several": write(func() []store.Op { return []store.Op{b.fresh("a"), b.fresh("b")} }),
		"load":    func() error { return b.site.Load(t.Context(), []store.Op{b.fresh(uuid.NewString())}) },
	}
}

// unavailable checks that concurrent calls of every kind return store.ErrUnavailable in time.
func (b *broken) unavailable(t *testing.T, how string, all calls) {
	t.Helper()
	var group sync.WaitGroup
	for name, call := range all {
		for range 4 {
			group.Go(func() {
				took, most := time.Hour, timeoutOf(name)+slack
				for range 3 { // other work on the machine may delay one of them
					began := time.Now()
					err := call()
					if !errors.Is(err, store.ErrUnavailable) {
						t.Errorf("%s while %s: %v, want ErrUnavailable", name, how, err)
					}
					if took = min(took, time.Since(began)); took <= most {
						return
					}
				}
				t.Errorf("%s while %s: took %s, at most %s wanted", name, how, took, most)
			})
		}
	}
	group.Wait()
}

// timeoutOf returns the timeout of a call, which is ten times longer for loads.
func timeoutOf(name string) time.Duration {
	if name == "load" {
		return 10 * callTimeout
	}
	return callTimeout
}

// served checks that calls succeed again within a while, without reopening the site.
func (b *broken) served(t *testing.T, how string, all calls) {
	t.Helper()
	for name, call := range all {
		await(t, fmt.Sprintf("%s after %s", name, how), func() error { return call() })
	}
}

// await retries a call until it succeeds.
func await(t *testing.T, what string, call func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := call()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: still %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestFailures breaks the server and the network in every known way. Each time it shows which error
// callers get, and that calls succeed again afterwards.
func TestFailures(t *testing.T) {
	b := breakIt(t)
	before := runtime.NumGoroutine()
	reads, writes := b.reads(t), b.writes(t)
	all := calls{}
	for _, some := range []calls{reads, writes} {
		for name, call := range some {
			all[name] = call
		}
	}
	for _, failure := range []struct {
		how            string
		begin, end     func(t *testing.T)
		fails, succeed calls
	}{
		{"the connection is cut", func(*testing.T) { b.proxy.cut() }, func(*testing.T) { b.proxy.mend() }, all, nil},
		{"nothing gets through", func(*testing.T) { b.proxy.stall() }, func(*testing.T) { b.proxy.mend() }, all, nil},
		{"the server hangs", func(t *testing.T) { must(t, b.server.Pause()) }, func(t *testing.T) { must(t, b.server.Resume()) }, all, nil},
		{"the server is stopped", func(t *testing.T) { must(t, b.server.Stop()) }, func(t *testing.T) { must(t, b.server.Restart(t.Context())) }, all, nil},
		{"others have all connections", b.occupy, b.vacate, all, nil},
		{"the server only reads", b.onlyRead, b.writeAgain, writes, reads},
		{"files cannot grow", b.fillUp, b.makeRoom, b.large(t), reads},
	} {
		t.Run(failure.how, func(t *testing.T) {
			failure.begin(t)
			b.unavailable(t, failure.how, failure.fails)
			for name, call := range failure.succeed {
				await(t, fmt.Sprintf("%s while %s", name, failure.how), call)
			}
			failure.end(t)
			b.served(t, failure.how, all)
		})
	}
	await(t, "goroutines end", func() error {
		// Each connection of the pool has two in the proxy, and the pool a few of its own.
		if now, most := runtime.NumGoroutine(), before+4*connections; now > most {
			return fmt.Errorf("there are %d, at most %d wanted", now, most)
		}
		if stat := b.pool.Stat(); stat.AcquiredConns() > 0 || stat.TotalConns() > connections {
			return fmt.Errorf("the pool has %d connections, %d of them in use", stat.TotalConns(), stat.AcquiredConns())
		}
		return nil
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
