package audit

import (
	"errors"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func refused(n, status int, caller string) []*Entry {
	all := entries(n)
	for _, e := range all {
		e.Time, e.Status, e.Caller, e.Rule = time.Now(), status, caller, "token"
	}
	return all
}

// addAll adds entries as requests of their own, which wait for them.
func addAll(t *testing.T, log *Log, entries []*Entry) {
	t.Helper()
	for _, e := range entries {
		if err := log.add(t.Context(), []*Entry{e}, true); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnonymousRequestsAreLimited shows that refused requests without a caller are stored up to a limit, and
// counted in a summary beyond it.
func TestAnonymousRequestsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &memory{}
		log := NewLog("oak", storage, Settings{})
		addAll(t, log, refused(1000, http.StatusUnauthorized, ""))
		addAll(t, log, refused(5, http.StatusForbidden, anonymous))
		addAll(t, log, refused(7, http.StatusServiceUnavailable, ""))
		if n := storage.stored(); n != anonymousPerHour {
			t.Errorf("%d entries are stored at once", n)
		}
		addAll(t, log, refused(100, http.StatusForbidden, "alice"))
		if n := storage.stored(); n != anonymousPerHour+100 {
			t.Errorf("%d entries with those of a known caller", n)
		}
		time.Sleep(summaryInterval + time.Second)
		synctest.Wait()
		counted := map[int]int{}
		for _, batch := range storage.batches {
			for _, e := range batch {
				counted[e.Status] += e.Requests
			}
		}
		want := map[int]int{http.StatusUnauthorized: 1000 - anonymousPerHour, http.StatusForbidden: 5, http.StatusServiceUnavailable: 7}
		if n := storage.stored(); n != anonymousPerHour+103 || !maps.Equal(counted, want) {
			t.Errorf("%d entries, which count %v, want %v", n, counted, want)
		}
		time.Sleep(time.Hour)
		addAll(t, log, refused(1, http.StatusUnauthorized, ""))
		if n := storage.stored(); n != anonymousPerHour+104 {
			t.Errorf("%d entries in the next hour", n)
		}
		addAll(t, log, refused(anonymousPerHour, http.StatusUnauthorized, ""))
		log.Close(t.Context())
		if n := storage.stored(); n != anonymousPerHour+104+anonymousPerHour {
			t.Errorf("%d entries with the last summary", n)
		}
	})
}

// TestAnonymousRequestsDoNotCloseASite floods a log that cannot be written for a moment.
func TestAnonymousRequestsDoNotCloseASite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := &memory{delay: time.Second}
		log := NewLog("oak", storage, Settings{})
		defer log.Close(t.Context())
		for range 2 {
			if err := log.add(t.Context(), refused(maxPending+1, http.StatusUnauthorized, ""), false); err != nil {
				t.Errorf("a flood: %v", err)
			}
		}
		if err := log.add(t.Context(), entries(1), true); err != nil {
			t.Errorf("a request after it: %v", err)
		}
		storage.fail(errors.New("full"))
		if err := log.add(t.Context(), entries(1), true); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a request that cannot be recorded: %v", err)
		}
		if err := log.add(t.Context(), refused(1, http.StatusUnauthorized, ""), true); err != nil {
			t.Errorf("a stranger, who is counted: %v", err)
		}
		storage.fail(nil)
	})
}
