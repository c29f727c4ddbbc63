package storetest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

func testPolling(t *testing.T, open Open) {
	s, _ := open(t)
	Poll(t, []store.Store{s}, s)
}

// Poll tests that polling misses no write. 16 writers write to the replicas in writers. At the same
// time, clients poll s for versions that are newer than all that they have received. They read the
// history of the site, the history of a type, a search sorted by time of update, and a search for
// all records. Of the last search, only records from before the watermark count.
func Poll(t *testing.T, writers []store.Store, s store.Store) {
	t.Helper()
	const writersN, ids, rounds = 16, 3, 12
	var done atomic.Bool
	pollers := []*poller{
		{name: "history of the site", ask: pollHistory(store.Key{})},
		{name: "history of the type", ask: pollHistory(store.Key{Type: patient})},
		{name: "search", ask: pollSearch},
		{name: "search until the watermark", ask: pollWatermark},
	}
	var polling sync.WaitGroup
	for _, p := range pollers {
		polling.Go(func() {
			// A write that another replica acknowledged is visible within the time soon, but not at once.
			// So the polls end only with one that began when soon had passed, and that has no new version.
			for newest := time.Now(); ; {
				written, began := done.Load(), time.Now()
				more, err := p.poll(t, s)
				if err != nil {
					t.Errorf("%s: %v", p.name, err)
					return
				}
				switch {
				case more || !written:
					newest = time.Now()
				case began.Sub(newest) >= soon:
					return
				}
			}
		})
	}
	written := make([][]store.Record, writersN)
	errs := race(writersN, writers, func(w int, s store.Store) error {
		for n := range ids * rounds {
			op := put(fmt.Sprintf("polled-%d-%d", w, n%ids), body(n))
			result, err := s.Write(t.Context(), []store.Op{op})
			if err != nil {
				return err
			}
			written[w] = append(written[w], result[0].Record)
		}
		return nil
	})
	done.Store(true)
	polling.Wait()
	same(t, "writers", winners(t, errs, func(error) bool { return false }), writersN)
	for _, p := range pollers {
		p.compare(t, slices.Concat(written...), rounds)
	}
}

// soon is how long a poller must receive nothing new before it ends.
const soon = 200 * time.Millisecond

// poller polls for versions that are newer than all that it has received.
type poller struct {
	name string
	ask  func(t *testing.T, s store.Store, since time.Time) (seen []store.Record, newestOnly bool, err error)
	// seen are the version numbers received, by id.
	seen       map[string][]int64
	newest     time.Time
	newestOnly bool
}

func (p *poller) poll(t *testing.T, s store.Store) (more bool, err error) {
	records, newestOnly, err := p.ask(t, s, p.newest)
	p.newestOnly = newestOnly
	if p.seen == nil {
		p.seen = map[string][]int64{}
	}
	for _, r := range records {
		p.seen[r.Key.ID] = append(p.seen[r.Key.ID], r.Version)
		if next := r.Updated.Add(time.Millisecond); next.After(p.newest) {
			p.newest = next
		}
	}
	return len(records) > 0, err
}

// compare checks that each version was received exactly once. With newestOnly it checks the last
// version of each record only.
func (p *poller) compare(t *testing.T, written []store.Record, rounds int64) {
	t.Helper()
	missed, twice := 0, 0
	for _, r := range written {
		if p.newestOnly && r.Version < rounds {
			continue
		}
		switch count := len(slices.DeleteFunc(slices.Clone(p.seen[r.Key.ID]), func(v int64) bool { return v != r.Version })); {
		case count == 0:
			missed++
		case count > 1:
			twice++
		}
	}
	if missed > 0 || twice > 0 {
		t.Errorf("%s: of %d writes %d were not received and %d more than once", p.name, len(written), missed, twice)
	}
}

func pollHistory(of store.Key) func(*testing.T, store.Store, time.Time) ([]store.Record, bool, error) {
	return func(t *testing.T, s store.Store, since time.Time) ([]store.Record, bool, error) {
		query := store.HistoryQuery{Key: of, Since: since, Count: 50}
		var seen []store.Record
		for {
			page, err := s.History(t.Context(), query)
			if err != nil {
				return nil, false, err
			}
			seen = append(seen, page.Records...)
			if query.After = page.Next; query.After == nil {
				return seen, false, nil
			}
		}
	}
}

func pollSearch(t *testing.T, s store.Store, since time.Time) ([]store.Record, bool, error) {
	query := store.Query{
		Types: patients, Count: 1000, Total: store.TotalNone,
		Where: store.UpdatedIn{From: since}, Sort: []store.Sort{{Field: store.SortUpdated}},
	}
	page, err := s.Search(t.Context(), query)
	return page.Records, true, err
}

func pollWatermark(t *testing.T, s store.Store, since time.Time) ([]store.Record, bool, error) {
	watermark, err := s.Watermark(t.Context())
	if err != nil {
		return nil, false, err
	}
	page, err := s.Search(t.Context(), store.Query{Types: patients, Count: 1000, Total: store.TotalNone})
	return slices.DeleteFunc(page.Records, func(r store.Record) bool {
		return r.Updated.Before(since) || !r.Updated.Before(watermark)
	}), true, err
}
