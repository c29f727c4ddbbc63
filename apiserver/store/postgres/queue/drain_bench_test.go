package queue_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
)

type noArgs struct{}

func (noArgs) Kind() string { return "nothing" }

type noWorker struct {
	river.WorkerDefaults[noArgs]
	done *atomic.Int64
}

func (w *noWorker) Work(context.Context, *river.Job[noArgs]) error {
	w.done.Add(1)
	return nil
}

const drained = 10_000

// BenchmarkDrain delivers events that are in the outbox by attempts that do nothing, and in the
// same run lets River work on as many jobs that do nothing.
func BenchmarkDrain(b *testing.B) {
	for _, webhooks := range []int{1, 10} {
		b.Run(strconv.Itoa(webhooks)+" webhooks", func(b *testing.B) {
			plain := drainRiver(b)
			b.ReportMetric(plain, "river/s")
			ours := drain(b, webhooks)
			b.ReportMetric(ours, "deliveries/s")
			b.ReportMetric(ours/plain, "of-river")
		})
	}
}

func drain(b *testing.B, webhooks int) float64 {
	d := newDatabase(b)
	s := d.site()
	var targets []string
	for n := range webhooks {
		targets = append(targets, "w"+strconv.Itoa(n))
	}
	for n := 0; n < drained/webhooks; n += 500 {
		post(b, s, "", targets, ids("e"+strconv.Itoa(n), min(500, drained/webhooks))...)
	}
	var done atomic.Int64
	r := &receiver{answer: func(context.Context, attempted) (delivery.Outcome, error) {
		done.Add(1)
		return delivered(), nil
	}}
	q := newQueue(b, d.pool, queue.Options{})
	q.Add(s, r)
	return rate(b, &done, func() { run(b, q) })
}

func drainRiver(b *testing.B) float64 {
	d := newDatabase(b)
	var done atomic.Int64
	workers := river.NewWorkers()
	river.AddWorker(workers, &noWorker{done: &done})
	pool, err := pgxpool.New(b.Context(), d.uri)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{"q": {MaxWorkers: 100}}, FetchCooldown: 5 * time.Millisecond, ReindexerSchedule: river.NeverSchedule(),
	})
	if err != nil {
		b.Fatal(err)
	}
	params := make([]river.InsertManyParams, 500)
	for i := range params {
		params[i] = river.InsertManyParams{Args: noArgs{}, InsertOpts: &river.InsertOpts{Queue: "q"}}
	}
	for range drained / len(params) {
		if err := pgx.BeginFunc(b.Context(), pool, func(tx pgx.Tx) error {
			_, err := client.InsertManyTx(b.Context(), tx, params)
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
	ctx := context.WithoutCancel(b.Context())
	b.Cleanup(func() { _ = client.Stop(ctx) })
	return rate(b, &done, func() {
		if err := client.Start(ctx); err != nil {
			b.Fatal(err)
		}
	})
}

// rate is how many are done in a second, from the first on.
func rate(b *testing.B, done *atomic.Int64, start func()) float64 {
	b.Helper()
	start()
	wait := func(n int64) time.Time {
		for done.Load() < n {
			if b.Context().Err() != nil {
				b.FailNow()
			}
			time.Sleep(time.Millisecond)
		}
		return time.Now()
	}
	began := wait(1)
	return drained / wait(drained).Sub(began).Seconds()
}
