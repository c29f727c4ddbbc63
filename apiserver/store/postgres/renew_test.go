package postgres_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// TestRenew reindexes a site while a server of the previous release writes. It is interrupted and
// resumes.
func TestRenew(t *testing.T) {
	const version = 7
	key := uuid.NewString()
	older := open(t, shared, key, postgres.Options{Extractor: extractingOthers(func([]byte) []store.IndexValue {
		return []store.IndexValue{{Param: "old", Value: store.Token{Code: "c"}}}
	})})
	const records = 2500
	for i := range records {
		if _, err := older.Write(t.Context(), []store.Op{counterOp(strconv.Itoa(i), i)}); err != nil {
			t.Fatal(err)
		}
	}
	newer := open(t, shared, key, postgres.Options{})
	newer.SetRenewPause(time.Millisecond)
	ctx, interrupt := context.WithCancel(t.Context())
	var reached store.Key
	_, err := newer.Renew(ctx, version, func(done postgres.Reindexed) {
		if reached = done.After; done.Read > 0 {
			interrupt()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	var passes []postgres.Reindexed
	state, err := newer.Renew(t.Context(), version, func(done postgres.Reindexed) {
		if done.Read == 0 { // a pass begins
			if len(passes) == 0 && done.After != reached {
				t.Errorf("went on behind %v, want %v", done.After, reached)
			}
			if len(passes) == 1 {
				if _, err := older.Write(t.Context(), []store.Op{counterOp("1", -1)}); err != nil {
					t.Error(err)
				}
			}
			passes = append(passes, done)
		} else {
			passes[len(passes)-1] = done
		}
		if state, err := open(t, shared, key, postgres.Options{}).Renew(t.Context(), version, nil); err != nil || state != postgres.Elsewhere {
			t.Errorf("another process meanwhile: %v, %v", state, err)
		}
	})
	if err != nil || state != postgres.Current {
		t.Fatalf("renewed: %v, %v", state, err)
	}
	// The passes are the rest of the first one, one that finds what the older server wrote since,
	// and one that finds nothing.
	var changed []int64
	for _, pass := range passes {
		changed = append(changed, pass.Changed)
	}
	if len(changed) != 3 || changed[0] != records-1000 || changed[1] != 1 || changed[2] != 0 {
		t.Errorf("changed in each pass: %v", changed)
	}
	for param, want := range map[string]int64{"old": 0, "code": records} {
		page, err := newer.Search(t.Context(), store.Query{Types: []string{patient}, Where: store.Present{Param: param}, Total: store.TotalAccurate})
		if err != nil || page.Total != want {
			t.Errorf("%d records have %s, want %d: %v", page.Total, param, want, err)
		}
	}
	for name, version := range map[string]int64{"the same release": version, "an earlier release": version - 1} {
		state, err := newer.Renew(t.Context(), version, func(done postgres.Reindexed) { t.Errorf("%s looks at records: %v", name, done) })
		if err != nil || state != postgres.Current {
			t.Errorf("%s: %v, %v", name, state, err)
		}
	}
}
