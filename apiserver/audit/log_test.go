package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// memory is a storage that can be made to fail. It keeps nothing beyond the process.
type memory struct {
	mu      sync.Mutex
	err     error
	delay   time.Duration
	batches [][]*Entry
	trims   []time.Duration // the retention of each call of Trim
}

func (m *memory) Append(ctx context.Context, entries []*Entry) error {
	m.mu.Lock()
	err, delay := m.err, m.delay
	m.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.batches = append(m.batches, slices.Clone(entries))
	}
	return err
}

func (m *memory) Search(context.Context, Query) ([]Entry, error) { return nil, nil }
func (m *memory) Trim(_ context.Context, retention time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trims = append(m.trims, retention)
	return nil
}
func (m *memory) fail(err error) { m.mu.Lock(); m.err = err; m.mu.Unlock() }

func (m *memory) stored() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.batches {
		n += len(b)
	}
	return n
}

func entries(n int) []*Entry {
	all := make([]*Entry, n)
	for i := range all {
		all[i] = &Entry{ID: newID(), Method: "GET"}
	}
	return all
}

func TestLogDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &memory{delay: 10 * time.Millisecond}
		log := NewLog("oak", storage, Settings{})
		defer log.Close(t.Context())
		var all sync.WaitGroup
		for range 50 { // they wait together
			all.Go(func() {
				if err := log.add(t.Context(), entries(1), true); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := storage.stored(); n != 50 || len(storage.batches) > 3 {
			t.Errorf("%d entries in %d batches", n, len(storage.batches))
		}
	})
}

// TestLogDurableUnderLoad answers those who wait while others keep coming.
func TestLogDurableUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &memory{delay: 10 * time.Millisecond}
		log := NewLog("oak", storage, Settings{})
		defer log.Close(t.Context())
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			for ctx.Err() == nil {
				_ = log.add(ctx, entries(1), false)
				time.Sleep(time.Millisecond) // of the bubble's clock
			}
		})
		began := time.Now()
		if err := log.add(t.Context(), entries(1), true); err != nil || time.Since(began) > 100*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		stop()
		all.Wait()
	})
}

// TestLogTrimsWhileItFails deletes old entries while no entries can be stored, because the storage may
// be full of them.
func TestLogTrimsWhileItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &memory{err: errors.New("full")}
		log := NewLog("oak", storage, Settings{Retention: 48 * time.Hour})
		defer log.Close(t.Context())
		if err := log.add(t.Context(), entries(1), true); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("got %v, want ErrUnavailable", err)
		}
		time.Sleep(firstTrim)
		log.Configure(Settings{Retention: 24 * time.Hour})
		time.Sleep(trimInterval)
		storage.mu.Lock()
		defer storage.mu.Unlock()
		if diff := cmp.Diff([]time.Duration{48 * time.Hour, 24 * time.Hour}, storage.trims); diff != "" {
			t.Errorf("retentions (-want +got):\n%s", diff)
		}
	})
}

func TestLogSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &memory{}
		log := NewLog("oak", storage, Settings{})
		if err := log.add(t.Context(), entries(3), false); err != nil || storage.stored() != 0 {
			t.Errorf("%d entries at once, error %v", storage.stored(), err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := storage.stored(); n != 3 {
			t.Errorf("%d entries after a second", n)
		}
		if err := log.add(t.Context(), entries(2), false); err != nil {
			t.Error(err)
		}
		log.Close(t.Context())
		if n := storage.stored(); n != 5 {
			t.Errorf("%d entries after the end", n)
		}
	})
}

// TestLogCollects shows that entries of reads that arrive while a batch is stored wait for the next one,
// as others do.
func TestLogCollects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &memory{delay: 10 * time.Millisecond}
		log := NewLog("oak", storage, Settings{})
		const n = 2000
		for range n { // for two seconds
			if err := log.add(t.Context(), entries(1), false); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		log.Close(t.Context())
		if got := storage.stored(); got != n || len(storage.batches) > 6 {
			t.Errorf("%d entries in %d batches", got, len(storage.batches))
		}
	})
}

func TestLogFailure(t *testing.T) {
	for _, goOn := range []bool{false, true} {
		t.Run(fmt.Sprintf("continue %v", goOn), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				storage := &memory{err: errors.New("away")}
				log := NewLog("oak", storage, Settings{Continue: goOn})
				defer log.Close(t.Context())
				check := func(what string, err error) {
					t.Helper()
					if errors.Is(err, ErrUnavailable) == goOn || err != nil && goOn {
						t.Errorf("%s: %v", what, err)
					}
				}
				check("the write that finds out", log.add(t.Context(), entries(1), true))
				check("a write", log.ready())
				check("a read", log.add(t.Context(), entries(1), false))
				check("many reads", log.add(t.Context(), entries(maxPending), false))
				storage.fail(nil)
				time.Sleep(3 * retryDelay)
				synctest.Wait()
				if err := log.ready(); err != nil {
					t.Errorf("after recovery: %v", err)
				}
				if n := storage.stored(); n != 2 {
					t.Errorf("%d entries are stored after recovery, want those that there was room for", n)
				}
			})
		})
	}
}

// TestLogBatches stores entries with many records in several batches, so that none takes too long.
func TestLogBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &memory{}
		log := NewLog("oak", storage, Settings{})
		defer log.Close(t.Context())
		many, huge := entries(100), entries(1)
		for _, e := range many {
			e.Records = RecordsOf(slices.Repeat([]string{"Patient/a"}, maxRecords)...)
		}
		huge[0].Records = RecordsOf(slices.Repeat([]string{"Patient/a"}, maxBatchRecords+1)...)
		if err := log.add(t.Context(), slices.Concat(huge, many, entries(maxBatch)), true); err != nil {
			t.Fatal(err)
		}
		if n := storage.stored(); n != 1+len(many)+maxBatch {
			t.Errorf("%d entries", n)
		}
		for _, batch := range storage.batches {
			records := 0
			for _, e := range batch {
				records += e.Records.count()
			}
			if len(batch) > maxBatch || len(batch) > 1 && records > maxBatchRecords {
				t.Errorf("a batch of %d entries has %d records", len(batch), records)
			}
		}
	})
}

// TestLogFull refuses reads that find no room, also before a flush has failed.
func TestLogFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := NewLog("oak", &memory{delay: time.Second}, Settings{})
		defer log.Close(t.Context())
		if err := log.add(t.Context(), entries(maxPending), false); err != nil {
			t.Fatal(err)
		}
		if err := log.add(t.Context(), entries(1), false); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a full buffer takes an entry: %v", err)
		}
	})
}

// TestLogClosed stores the entries of requests that began before their log was closed.
func TestLogClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &memory{}
		log := NewLog("oak", storage, Settings{})
		log.Close(t.Context())
		for _, durable := range []bool{true, false} {
			began := time.Now()
			if err := log.add(t.Context(), entries(1), durable); err != nil || time.Since(began) > 0 {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		}
		if n := storage.stored(); n != 2 {
			t.Errorf("%d entries", n)
		}
		storage.fail(errors.New("away"))
		if err := log.add(t.Context(), entries(1), true); !errors.Is(err, ErrUnavailable) {
			t.Errorf("where they cannot be stored: %v", err)
		}
	})
}

// TestLogMoved stores what waits, and an entry that is being stored, in the new place.
func TestLogMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := &memory{delay: time.Second, err: errors.New("credentials changed")}, &memory{}
		log := NewLog("oak", before, Settings{})
		defer log.Close(t.Context())
		added := make(chan error, 1)
		go func() { added <- log.add(t.Context(), entries(1), true) }()
		synctest.Wait()
		log.Move(after)
		if err := <-added; err != nil {
			t.Error(err)
		}
		if err := log.add(t.Context(), entries(1), true); err != nil {
			t.Error(err)
		}
		if n := after.stored(); n != 2 {
			t.Errorf("%d entries after the move", n)
		}
	})
}

func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		lines := NewLines(&out)
		want := ""
		for _, e := range []*Entry{
			{Time: time.Unix(0, 0), ID: 1, Caller: "a\"b\n", Method: "GET", Status: 200, Records: RecordsOf("Patient/a", "Patient/b")},
			{Time: time.Unix(1, 5000), ID: 2, Method: "PUT", Status: 403, Rule: "rbac", BreakGlass: true, Parameters: []string{"name"}},
		} {
			lines.add([]*Entry{e})
			want += string(e.JSON()) + "\n"
		}
		lines.Close()
		if diff := cmp.Diff(want, out.String()); diff != "" || strings.Count(want, "\n") != 2 {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestEntryJSON(t *testing.T) {
	e := Entry{
		Time: time.Date(2026, 11, 23, 1, 2, 3, 4000, time.UTC), ID: 1 << 60, Site: "1042", Request: "r", Correlation: "c d", Caller: "system:serviceaccount:a:b",
		Subject: ServiceAccount, Issuer: "clinic", Address: "::1", API: "fhir", Interaction: "search-type", Action: Execute, Method: "GET", Type: "Patient",
		Records: RecordsOf("Patient/a"), Status: 404, Rule: "x", BreakGlass: true, Requests: 7, Parameters: []string{"name", "_count"},
	}
	text := e.JSON()
	got, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, text)
	}
}
