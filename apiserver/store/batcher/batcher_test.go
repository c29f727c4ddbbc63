package batcher

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// query is a query that must be answered with its number.
type query struct {
	number, answer int
	err            error
}

// blockingRunner records batches and blocks each of them until the test sends to release.
type blockingRunner struct {
	mu      sync.Mutex
	batches [][]int
	release chan struct{}
}

func (r *blockingRunner) run(ctx context.Context, batch []*query) {
	r.mu.Lock()
	var numbers []int
	for _, q := range batch {
		numbers = append(numbers, q.number)
	}
	r.batches = append(r.batches, slices.Sorted(slices.Values(numbers)))
	r.mu.Unlock()
	select {
	case <-r.release:
	case <-ctx.Done():
		for _, q := range batch {
			q.err = ctx.Err()
		}
		return
	}
	for _, q := range batch {
		q.answer = q.number
	}
}

func (r *blockingRunner) seen() [][]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.batches)
}

// fixture is a Batcher with a blockingRunner, and the result of each caller: an answer or an error.
type fixture struct {
	*Batcher[*query]
	runner *blockingRunner

	mu      sync.Mutex
	results map[int]any
}

func newFixture() *fixture {
	r := &blockingRunner{release: make(chan struct{})}
	return &fixture{Batcher: New(time.Second, r.run), runner: r, results: map[int]any{}}
}

// do calls Do for each query in a goroutine of its own. It returns when all goroutines are blocked.
func (f *fixture) do(ctx context.Context, numbers ...int) {
	for _, number := range numbers {
		go func() {
			q := &query{number: number}
			err := f.Do(ctx, q)
			if err == nil {
				err = q.err
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.results[number] = q.answer; err != nil {
				f.results[number] = err
			}
		}()
		synctest.Wait()
	}
}

func (f *fixture) expect(t *testing.T, want map[int]any) {
	t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	equalErrors := cmp.Comparer(func(x, y error) bool { return errors.Is(x, y) || errors.Is(y, x) })
	if diff := cmp.Diff(want, f.results, equalErrors); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func (f *fixture) expectBatches(t *testing.T, want ...[]int) {
	t.Helper()
	if diff := cmp.Diff(want, f.runner.seen()); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

func (f *fixture) expectIdle(t *testing.T) {
	t.Helper()
	if f.inFlight != 0 || len(f.queue) != 0 {
		t.Errorf("%d batches are in flight and %d queries are queued after the last caller returned", f.inFlight, len(f.queue))
	}
}

func TestQueriesJoinTheNextBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.do(t.Context(), 1, 2, 3, 4)
		f.runner.release <- struct{}{}
		f.expect(t, map[int]any{1: 1})
		f.runner.release <- struct{}{}
		f.expect(t, map[int]any{1: 1, 2: 2, 3: 3, 4: 4})
		f.expectBatches(t, []int{1}, []int{2, 3, 4})
		f.expectIdle(t)
	})
}

// TestCallersThatGiveUp shows that a batch outlives the context of its leader. Queries whose callers
// gave up while they were queued are not run.
func TestCallersThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		leader, cancelLeader := context.WithCancel(t.Context())
		queued, cancelQueued := context.WithCancel(t.Context())
		f.do(leader, 1)
		f.do(queued, 2)
		f.do(t.Context(), 3)
		cancelLeader()
		cancelQueued()
		f.expect(t, map[int]any{2: context.Canceled})
		f.runner.release <- struct{}{}
		f.runner.release <- struct{}{}
		f.expect(t, map[int]any{1: 1, 2: context.Canceled, 3: 3})
		f.expectBatches(t, []int{1}, []int{3})
		f.expectIdle(t)
	})
}

// TestLongQueueStartsBatch shows that a queue of queueThreshold starts another batch although one is
// in flight, and that a later query waits for one of them.
func TestLongQueueStartsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		want, second := map[int]any{}, []int(nil)
		for number := range queueThreshold + 2 {
			if number == queueThreshold {
				f.expectBatches(t, []int{0})
			}
			f.do(t.Context(), number)
			want[number] = number
			if 0 < number && number <= queueThreshold {
				second = append(second, number)
			}
		}
		f.expectBatches(t, []int{0}, second)
		for range 3 {
			f.runner.release <- struct{}{}
		}
		f.expect(t, want)
		f.expectBatches(t, []int{0}, second, []int{queueThreshold + 1})
		f.expectIdle(t)
	})
}

// TestSlowBatch shows that queries do not wait for a batch that does not end, until maxInFlight
// batches are in flight.
func TestSlowBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.do(t.Context(), 1, 2, 3)
		time.Sleep(overtakeInterval)
		synctest.Wait()
		f.expectBatches(t, []int{1}, []int{2, 3})
		want := map[int]any{1: context.DeadlineExceeded, 2: context.DeadlineExceeded, 3: context.DeadlineExceeded}
		for number := range maxInFlight {
			f.do(t.Context(), 10+number)
			time.Sleep(overtakeInterval)
			synctest.Wait()
			want[10+number] = context.DeadlineExceeded
		}
		if n := len(f.runner.seen()); n != maxInFlight {
			t.Errorf("%d batches are in flight, want %d", n, maxInFlight)
		}
		time.Sleep(2 * f.timeout)
		f.expect(t, want)
		f.expectIdle(t)
	})
}

// TestPanic shows that a panic in run reaches the leader of the batch only. The other callers of the
// batch return, and the next batch runs.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.do(t.Context(), 1)
		originalRun := f.run
		f.run = func(context.Context, []*query) { panic("broken") }
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_ = f.Do(t.Context(), &query{number: 2})
		}()
		synctest.Wait()
		f.do(t.Context(), 3)
		f.runner.release <- struct{}{}
		if got := <-panicked; got != "broken" {
			t.Errorf("the leader recovered %v, want the panic of run", got)
		}
		f.expect(t, map[int]any{1: 1, 3: 0})
		f.run = originalRun
		f.do(t.Context(), 4)
		f.runner.release <- struct{}{}
		f.expect(t, map[int]any{1: 1, 3: 0, 4: 4})
		f.expectIdle(t)
	})
}

// TestManyCallers runs batches of concurrent callers, a quarter of which give up.
func TestManyCallers(t *testing.T) {
	b := New(time.Minute, func(_ context.Context, batch []*query) {
		if len(batch) > maxBatch {
			t.Errorf("a batch has %d queries, want at most %d", len(batch), maxBatch)
		}
		for _, q := range batch {
			q.answer = q.number
		}
	})
	var callers sync.WaitGroup
	for caller := range 64 {
		callers.Go(func() {
			for i := range 500 {
				q := &query{number: 1 + caller*1000 + i}
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(4) == 0 {
					go cancel()
				}
				err := b.Do(ctx, q)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				if err == nil && q.answer != q.number {
					t.Errorf("query %d has the answer %d", q.number, q.answer)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	if b.inFlight != 0 || len(b.queue) != 0 {
		t.Errorf("%d batches are in flight and %d queries are queued after the last caller returned", b.inFlight, len(b.queue))
	}
}
