package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/paddock-health/paddock/apiserver/store"
)

// race calls run n times concurrently, alternating between the replicas, and returns the errors.
func race(n int, replicas []store.Store, run func(i int, s store.Store) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			errs[i] = run(i, replicas[i%len(replicas)])
		})
	}
	close(start)
	group.Wait()
	return errs
}

// winners returns the number of nil errors. It reports each error for which lost is false.
func winners(t *testing.T, errs []error, lost func(error) bool) int {
	t.Helper()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !lost(err):
			t.Errorf("a loser got %v", err)
		}
	}
	return won
}

func lostByPrecondition(err error) bool {
	var e *store.PreconditionError
	return errors.As(err, &e)
}

func testOneWinnerByVersion(t *testing.T, open Open) {
	s, other := open(t)
	write(t, s, put("rex", body(0)))
	for round := range 5 {
		version := int64(round + 1)
		errs := race(64, []store.Store{s, other}, func(_ int, s store.Store) error {
			op := put("rex", body(round+1)) // even with equal bodies only one may win
			op.If.Version = version
			_, err := s.Write(t.Context(), []store.Op{op})
			return err
		})
		same(t, "winners", winners(t, errs, lostByPrecondition), 1)
		same(t, "version", get(t, other, "rex").Version, version+1)
	}
}

func testOneWinnerOfCreation(t *testing.T, open Open) {
	s, other := open(t)
	for round := range 5 {
		id := fmt.Sprintf("new-%d", round)
		errs := race(64, []store.Store{s, other}, func(_ int, s store.Store) error {
			op := put(id, body(1))
			op.If.Absent = true
			_, err := s.Write(t.Context(), []store.Op{op})
			return err
		})
		same(t, "winners", winners(t, errs, lostByPrecondition), 1)
		same(t, "version", get(t, other, id).Version, int64(1))
	}
}

func testOneWinnerOfInterval(t *testing.T, open Open) {
	s, other := open(t)
	lostByClaim := func(err error) bool {
		var e *store.ClaimError
		return errors.As(err, &e)
	}
	for round := range 3 {
		line := fmt.Sprintf("room-%d", round)
		errs := race(32, []store.Store{s, other}, func(i int, s store.Store) error {
			_, err := s.Write(t.Context(), []store.Op{claiming(fmt.Sprintf("%s-slot-%d", line, i), i, hours(line, i%4, 5+i%4))})
			return err
		})
		same(t, "winners", winners(t, errs, lostByClaim), 1)
	}
}

// testNoUpdateLost shows that concurrent read-modify-write cycles with If.Version lose no update.
func testNoUpdateLost(t *testing.T, open Open) {
	s, other := open(t)
	write(t, s, put("counter", body(0)))
	const writersN, each = 8, 6
	errs := race(writersN, []store.Store{s, other}, func(_ int, s store.Store) error {
		for done := 0; done < each; {
			r, err := s.Get(t.Context(), key("counter"))
			if err != nil {
				return err
			}
			op := put("counter", body(counter(t, r)+1))
			op.If.Version = r.Version
			_, err = s.Write(t.Context(), []store.Op{op})
			switch {
			case err == nil:
				done++
			case !lostByPrecondition(err):
				return err
			}
		}
		return nil
	})
	same(t, "writers", winners(t, errs, func(error) bool { return false }), writersN)
	r := get(t, s, "counter")
	same(t, "counter and version", []int64{int64(counter(t, r)), r.Version}, []int64{writersN * each, writersN*each + 1})
}

// testEveryWriteIsOneVersion shows that each acknowledged write without a precondition is in the
// history exactly once.
func testEveryWriteIsOneVersion(t *testing.T, open Open) {
	s, other := open(t)
	const writersN = 18
	acknowledged := make([]int64, writersN)
	errs := race(writersN, []store.Store{s, other}, func(i int, s store.Store) error {
		results, err := s.Write(t.Context(), []store.Op{put("rex", body(i))})
		if err == nil {
			acknowledged[i] = results[0].Record.Version
		}
		return err
	})
	same(t, "writers", winners(t, errs, func(error) bool { return false }), writersN)
	for i, version := range acknowledged {
		r, err := other.GetVersion(t.Context(), key("rex"), version)
		if err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		same(t, fmt.Sprintf("version %d", version), counter(t, r), i)
	}
	page, err := s.History(t.Context(), store.HistoryQuery{Key: key("rex"), Count: 100})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "versions", page.Total, int64(writersN))
}

// testDeletePutRead mixes puts, deletes, purges and reads of a few ids. A read returns a complete
// body or an error of the contract, and searches agree with reads in the end.
func testDeletePutRead(t *testing.T, open Open) {
	s, other := open(t)
	var reads atomic.Int64
	errs := race(12, []store.Store{s, other}, func(i int, s store.Store) error {
		for n := range 15 {
			id := fmt.Sprintf("mixed-%d", n%3)
			op := put(id, body(i*100+n))
			switch (i + n) % 5 {
			case 0:
				op = del(id)
			case 1:
				op = store.Op{Kind: store.Purge, Key: key(id), Method: store.MethodDelete}
			}
			if _, err := s.Write(t.Context(), []store.Op{op}); err != nil {
				return err
			}
			r, err := s.Get(t.Context(), key(id))
			var gone *store.DeletedError
			switch {
			case err == nil:
				counter(t, r)
				reads.Add(1)
			case !errors.Is(err, store.ErrNotFound) && !errors.As(err, &gone):
				return err
			}
		}
		return nil
	})
	same(t, "writers", winners(t, errs, func(error) bool { return false }), 12)
	if reads.Load() == 0 {
		t.Error("no read found a record")
	}
	for _, replica := range []store.Store{s, other} {
		eventually(t, "search agrees with reads", func() bool {
			found := allIDs(t, replica, store.Query{Types: patients, Count: 10, Sort: []store.Sort{{Field: store.SortID}}})
			want := []string{}
			for n := range 3 {
				if _, err := replica.Get(t.Context(), key(fmt.Sprintf("mixed-%d", n))); err == nil {
					want = append(want, fmt.Sprintf("mixed-%d", n))
				}
			}
			return fmt.Sprint(found) == fmt.Sprint(want)
		})
	}
}
