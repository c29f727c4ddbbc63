package queue_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/colocationtest"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/hack/dev/localpostgres"
)

// server is the database server of this package, with its files in serverDir.
var (
	server    *localpostgres.Server
	serverDir string
)

func TestMain(m *testing.M) {
	if uri := os.Getenv(childURI); uri != "" {
		os.Exit(child(uri, os.Getenv(childSite)))
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "paddock-queue")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		serverDir = dir
		server, err = localpostgres.Start(context.Background(), localpostgres.Options{Dir: dir, UnsafeNoFsync: true, Settings: map[string]string{"max_connections": "200"}})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = server.Stop() }()
		return m.Run()
	}())
}

// database is a database of one test.
type database struct {
	t    testing.TB
	uri  string
	pool *pgxpool.Pool
	// recorder records the statements of all pools, or is nil in benchmarks.
	recorder *colocationtest.Recorder
}

func newDatabase(t testing.TB) *database {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(context.WithoutCancel(t.Context())) }()
	name := "q" + uuid.NewString()[:8]
	if _, err := admin.Exec(t.Context(), `CREATE DATABASE `+name); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), server.URL(name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := schema.Migrate(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	d := &database{t: t, uri: server.URL(name) + "&statement_timeout=60s"} // a busy machine ends no statement
	if test, ok := t.(*testing.T); ok {
		d.recorder = colocationtest.NewRecorder()
		t.Cleanup(func() { d.checkStatements(test) })
	}
	d.pool = d.connect()
	return d
}

func (d *database) connect() *pgxpool.Pool {
	d.t.Helper()
	config, err := postgres.Config(d.uri)
	if err != nil {
		d.t.Fatal(err)
	}
	if d.recorder != nil {
		config.ConnConfig.Tracer = d.recorder
	}
	pool, err := pgxpool.NewWithConfig(d.t.Context(), config)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(pool.Close)
	return pool
}

// site is a new site of the database.
func (d *database) site() *postgres.Store { return d.open(uuid.NewString()) }

func (d *database) open(key string) *postgres.Store {
	d.t.Helper()
	s, err := postgres.Open(d.t.Context(), d.pool, key, postgres.Options{QueryTimeout: time.Minute})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// run runs a queue until stop is called or the test ends.
func run(t testing.TB, q *queue.Queue) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run the queue: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func newQueue(t testing.TB, pool *pgxpool.Pool, options queue.Options) *queue.Queue {
	t.Helper()
	if options.Breaker == nil {
		options.Breaker = breaker{after: 1 << 30}
	}
	q, err := queue.New(pool, options)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// breaker opens after some failures, for a time.
type breaker struct {
	after int
	time  time.Duration
}

func (b breaker) After(state delivery.State, attempt delivery.Attempt) delivery.State {
	if attempt.Reason == delivery.ReasonDelivered {
		return delivery.State{LastSuccess: attempt.At}
	}
	if state.Failures++; state.Failures == 1 {
		state.FailingSince = attempt.At
	}
	if state.Failures >= b.after {
		state.OpenUntil = attempt.At.Add(b.time)
	}
	return state
}

// attempted is a call of Attempt.
type attempted struct {
	Webhook, Event string
	Sequence       int64
	Attempts       int
}

// receiver is a Sender that notes its calls.
type receiver struct {
	// answer decides what an attempt comes to. Default: delivered.
	answer  func(ctx context.Context, call attempted) (delivery.Outcome, error)
	ordered bool

	mu    sync.Mutex
	calls []attempted
}

func (r *receiver) Ordered(string) bool { return r.ordered }

func (r *receiver) Attempt(ctx context.Context, webhook string, event store.AcceptedEvent, attempts int) (delivery.Outcome, error) {
	call := attempted{webhook, event.ID, event.Sequence, attempts}
	r.mu.Lock()
	r.calls = append(r.calls, call)
	r.mu.Unlock()
	if r.answer == nil {
		return delivered(), nil
	}
	return r.answer(ctx, call)
}

func (r *receiver) all() []attempted {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// events returns the ids of the events that were attempted, in order.
func (r *receiver) events() []string {
	ids := []string{}
	for _, call := range r.all() {
		ids = append(ids, call.Event)
	}
	return ids
}

func delivered() delivery.Outcome {
	return delivery.Outcome{Status: delivery.Delivered, Attempt: delivery.Attempt{At: time.Now(), StatusCode: 200, Reason: delivery.ReasonDelivered}}
}

func failure(at time.Time) delivery.Attempt {
	return delivery.Attempt{At: at, StatusCode: 500, Reason: delivery.ReasonStatus, Message: "HTTP 500", Response: []byte("oops")}
}

func retry(at, next time.Time) delivery.Outcome {
	return delivery.Outcome{Status: delivery.Pending, Next: next, Attempt: failure(at)}
}

func disabled(context.Context, attempted) (delivery.Outcome, error) {
	return delivery.Outcome{Status: delivery.Undelivered, Attempt: delivery.Attempt{At: time.Now(), Reason: delivery.ReasonDisabled}}, nil
}

// post accepts events with ids, of one subject, for webhooks.
func post(t testing.TB, s *postgres.Store, subject string, targets []string, ids ...string) {
	t.Helper()
	events := make([]store.Event, len(ids))
	for i, id := range ids {
		events[i] = store.Event{
			ID: id, Type: "task.created", Subject: subject, Targets: targets,
			Envelope: store.Envelope{JSON: []byte(fmt.Sprintf(`{"id":%q,"sequence":}`, id)), SequenceOffset: len(id) + 20},
		}
	}
	op := store.Op{Kind: store.Put, Key: store.Key{Type: "Event", ID: ids[0]}, Method: store.MethodPost, Body: store.Body{JSON: []byte(`{}`)}}
	op.Events = func(store.Change) []store.Event { return events }
	if _, err := s.Write(t.Context(), []store.Op{op}); err != nil {
		t.Fatal(err)
	}
}

func ids(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%05d", prefix, i)
	}
	return all
}

// deliveriesOf lists the deliveries of a webhook, the oldest first.
func deliveriesOf(t testing.TB, s *postgres.Store, query delivery.Query) []delivery.Delivery {
	t.Helper()
	query.Count = 10_000
	found, _, err := s.Deliveries().Deliveries(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(found)
	return found
}

// counts returns how many deliveries of a webhook have each status.
func counts(t testing.TB, s *postgres.Store, webhook string) map[delivery.Status]int {
	t.Helper()
	all := map[delivery.Status]int{}
	for _, d := range deliveriesOf(t, s, delivery.Query{Webhook: webhook}) {
		all[d.Status]++
	}
	return all
}
