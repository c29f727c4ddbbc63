package postgres

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

// slowReads reads records whose hash is their rid, once it is let to.
type slowReads struct {
	mu   sync.Mutex
	read [][]int64
	// next tells a read to end, with an error or without.
	next chan error
}

func (r *slowReads) find(ctx context.Context, selves []int64) (map[int64]lookedUp, error) {
	r.mu.Lock()
	r.read = append(r.read, slices.Sorted(slices.Values(selves)))
	r.mu.Unlock()
	select {
	case err := <-r.next:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	records := map[int64]lookedUp{}
	for _, self := range selves {
		if self >= 0 {
			records[self] = lookedUp{at: &state{rid: self}}
		}
	}
	return records, nil
}

func (r *slowReads) seen() [][]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.read)
}

// answers are what lookups came to: the rid, 0 for none, or the error.
type answersOf struct {
	mu  sync.Mutex
	all map[int64]any
}

func (a *answersOf) ask(ctx context.Context, l *lookups, selves ...int64) {
	for _, self := range selves {
		go func() {
			at, err := l.get(ctx, self)
			a.mu.Lock()
			defer a.mu.Unlock()
			switch {
			case err != nil:
				a.all[self] = err
			case at == nil:
				a.all[self] = int64(0)
			default:
				a.all[self] = at.rid
			}
		}()
		synctest.Wait()
	}
}

func (a *answersOf) check(t *testing.T, want map[int64]any) {
	t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	same := cmp.Comparer(func(x, y error) bool { return errors.Is(x, y) || errors.Is(y, x) })
	if diff := cmp.Diff(want, a.all, same); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func newSlowReads() (*slowReads, *lookups, *answersOf) {
	reads := &slowReads{next: make(chan error)}
	return reads, newLookups(reads.find, time.Second), &answersOf{all: map[int64]any{}}
}

func (l *lookups) checkIdle(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if l.reading != 0 || len(l.waiting) != 0 {
		t.Errorf("%d reads are under way and %d wait, when all is answered", l.reading, len(l.waiting))
	}
}

func TestLookupsGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, l, answers := newSlowReads()
		answers.ask(t.Context(), l, 1, 2, -3, 4)
		reads.next <- nil
		answers.check(t, map[int64]any{1: int64(1)})
		reads.next <- nil
		answers.check(t, map[int64]any{1: int64(1), 2: int64(2), -3: int64(0), 4: int64(4)})
		if diff := cmp.Diff([][]int64{{1}, {-3, 2, 4}}, reads.seen()); diff != "" {
			t.Errorf("reads (-want +got):\n%s", diff)
		}
		l.checkIdle(t)
	})
}

// An error is that of the reads that went together, and of no later one.
func TestLookupsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, l, answers := newSlowReads()
		cut := errors.New("cut")
		answers.ask(t.Context(), l, 1, 2, 3)
		reads.next <- nil
		reads.next <- cut
		answers.check(t, map[int64]any{1: int64(1), 2: cut, 3: cut})
		answers.ask(t.Context(), l, 4)
		reads.next <- nil
		answers.check(t, map[int64]any{1: int64(1), 2: cut, 3: cut, 4: int64(4)})
		l.checkIdle(t)
	})
}

// Who goes away is not waited for and takes nothing from the others.
func TestLookupsOfCallersThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, l, answers := newSlowReads()
		leading, leave := context.WithCancel(t.Context())
		waiting, stopWaiting := context.WithCancel(t.Context())
		answers.ask(leading, l, 1)
		answers.ask(waiting, l, 2)
		answers.ask(t.Context(), l, 3)
		leave()
		stopWaiting()
		answers.check(t, map[int64]any{2: context.Canceled})
		reads.next <- nil
		reads.next <- nil
		answers.check(t, map[int64]any{1: int64(1), 2: context.Canceled, 3: int64(3)})
		if diff := cmp.Diff([][]int64{{1}, {3}}, reads.seen()); diff != "" {
			t.Errorf("reads (-want +got):\n%s", diff)
		}
		l.checkIdle(t)
	})
}

// A crowd that waits for one read does not wait for another to end.
func TestLookupsOfACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, l, answers := newSlowReads()
		want := map[int64]any{}
		ask := func(selves ...int64) {
			for _, self := range selves {
				answers.ask(t.Context(), l, self)
				want[self] = self
			}
		}
		for self := range int64(crowd) {
			ask(self)
		}
		if n := len(reads.seen()); n != 1 {
			t.Errorf("%d reads are under way for %d who wait, want 1", n, crowd-1)
		}
		ask(crowd, crowd+1)
		if n, size := len(reads.seen()), len(reads.seen()[1]); n != 2 || size != crowd {
			t.Errorf("%d reads are under way, the second of %d, want 2 and %d", n, size, crowd)
		}
		for range 3 {
			reads.next <- nil
		}
		answers.check(t, want)
		l.checkIdle(t)
	})
}

// A connection that hangs holds up those who wait for it, and nobody else for long.
func TestLookupsOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, l, answers := newSlowReads()
		answers.ask(t.Context(), l, 1, 2, 3)
		time.Sleep(patientFor)
		synctest.Wait()
		if diff := cmp.Diff([][]int64{{1}, {2, 3}}, reads.seen()); diff != "" {
			t.Errorf("reads (-want +got):\n%s", diff)
		}
		for self := range int64(mostReading) {
			answers.ask(t.Context(), l, 10+self)
			time.Sleep(patientFor)
			synctest.Wait()
		}
		if n := len(reads.seen()); n != mostReading {
			t.Errorf("%d reads are under way at a time, want %d", n, mostReading)
		}
		time.Sleep(2 * l.timeout)
		want := map[int64]any{1: context.DeadlineExceeded, 2: context.DeadlineExceeded, 3: context.DeadlineExceeded}
		for self := range int64(mostReading) {
			want[10+self] = context.DeadlineExceeded
		}
		answers.check(t, want)
		l.checkIdle(t)
	})
}

// A read that panics takes its own request down and leaves the others an answer.
func TestLookupsPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, answers := newSlowReads()
		begun, end := make(chan struct{}), make(chan struct{})
		l.ask = readsOf(func(context.Context, []int64) (map[int64]lookedUp, error) {
			close(begun)
			<-end
			panic("broken")
		}).all
		go func() {
			defer func() { _ = recover() }()
			_, _ = l.get(t.Context(), 1)
		}()
		<-begun
		reads := &slowReads{next: make(chan error, 1)}
		answers.ask(t.Context(), l, 2)
		l.ask = readsOf(reads.find).all
		reads.next <- nil
		close(end)
		answers.check(t, map[int64]any{2: int64(2)})
		l.checkIdle(t)
	})
}

func TestLookupsOfMany(t *testing.T) {
	l := newLookups(func(_ context.Context, selves []int64) (map[int64]lookedUp, error) {
		records := map[int64]lookedUp{}
		for _, self := range selves {
			records[self] = lookedUp{at: &state{rid: self}}
		}
		return records, nil
	}, time.Minute)
	var group sync.WaitGroup
	for worker := range int64(64) {
		group.Go(func() {
			for i := range int64(500) {
				self := worker*1000 + i
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(4) == 0 {
					go cancel()
				}
				at, err := l.get(ctx, self)
				if err == nil && (at == nil || at.rid != self) || err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("lookup of %d: %v, %v", self, at, err)
				}
				cancel()
			}
		})
	}
	group.Wait()
	if l.reading != 0 || len(l.waiting) != 0 {
		t.Errorf("%d reads are under way and %d wait, when all is answered", l.reading, len(l.waiting))
	}
}
