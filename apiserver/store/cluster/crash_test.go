package cluster_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

func rex(n int) store.Op {
	return store.Op{
		Kind: store.Put, Key: store.Key{Type: "Patient", ID: "rex"}, Method: store.MethodPut,
		Body: store.Body{JSON: fmt.Appendf(nil, `{"resourceType":"Patient","id":"","meta":{},"multipleBirthInteger":%d}`, n), IDOffset: 30, MetaOffset: 41},
	}
}

func claimed(op store.Op, lines ...string) store.Op {
	op.Claims = []store.Claim{}
	for _, line := range lines {
		op.Claims = append(op.Claims, store.Claim{Line: line})
	}
	return op
}

func mustWrite(t *testing.T, s store.Store, op store.Op) store.Result {
	t.Helper()
	results, err := s.Write(t.Context(), []store.Op{op})
	if err != nil {
		t.Fatalf("write: %v", err)
	}
	return results[0]
}

// crashingSite is a site whose writer stops for good at the nth step of its next write, counted
// from 1.
type crashingSite struct {
	store.Store
	dieAt, reached atomic.Int64
}

func newCrashingSite(t *testing.T, namespace, key string) *crashingSite {
	site := &crashingSite{}
	engine := newEngine(t, cluster.Options{AfterStep: func(string) {
		if site.reached.Add(1) == site.dieAt.Load() {
			runtime.Goexit()
		}
	}})
	site.Store = engine.Open(namespace, key, cluster.DefaultLimits)
	return site
}

// write runs one write that stops at a step. It reports whether the write reached that step.
func (s *crashingSite) write(t *testing.T, op store.Op, dieAt int64) (died bool) {
	s.reached.Store(0)
	s.dieAt.Store(dieAt)
	died = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := s.Write(t.Context(), []store.Op{op})
		died = false
		if err != nil {
			t.Errorf("write: %v", err)
		}
	}()
	<-done
	s.dieAt.Store(0)
	return died
}

// TestCrashAtEveryStep stops the writer after each step of each kind of write. Another replica must
// then find the state before or the state after with its events, and must be able to write.
func TestCrashAtEveryStep(t *testing.T) {
	put, remove, purge := rex(2), store.Op{Kind: store.Delete, Key: rex(0).Key, Method: store.MethodDelete}, store.Op{Kind: store.Purge, Key: rex(0).Key}
	for name, test := range map[string]struct {
		before []store.Op
		op     store.Op
	}{
		"create":                  {nil, rex(2)},
		"create with a claim":     {nil, claimed(rex(2), "line")},
		"update":                  {[]store.Op{rex(1)}, put},
		"second update":           {[]store.Op{rex(0), rex(1)}, put},
		"update taking a claim":   {[]store.Op{rex(1)}, claimed(put, "line")},
		"update giving up one":    {[]store.Op{claimed(rex(1), "line")}, claimed(put)},
		"update keeping a claim":  {[]store.Op{claimed(rex(1), "line")}, put},
		"update changing claims":  {[]store.Op{claimed(rex(1), "line", "old")}, claimed(put, "line", "new")},
		"delete":                  {[]store.Op{rex(0), rex(1)}, remove},
		"delete with a claim":     {[]store.Op{claimed(rex(1), "line")}, remove},
		"create again":            {[]store.Op{rex(1), remove}, put},
		"purge":                   {[]store.Op{rex(0), rex(1)}, purge},
		"purge with a claim":      {[]store.Op{claimed(rex(1), "line")}, purge},
		"purge of one never over": {[]store.Op{rex(1)}, purge},

		"create after a purge":              {[]store.Op{rex(0), rex(1), purge}, put},
		"create with a claim after a purge": {[]store.Op{rex(1), purge}, claimed(put, "line")},
	} {
		t.Run(name, func(t *testing.T) {
			healthy := newEngine(t, cluster.Options{})
			for step := int64(1); ; step++ {
				namespace, key := newSite(t)
				crashing, other := newCrashingSite(t, namespace, key), healthy.Open(namespace, key, cluster.DefaultLimits)
				for _, op := range test.before {
					mustWrite(t, crashing, telling(op))
				}
				before := observe(t, other)
				earlier := pending(t, namespace)
				died := crashing.write(t, telling(test.op), step)
				after := observe(t, other)
				checkWhole(t, step, died, test.op, before, after)
				checkEvents(t, step, other, namespace, ids(earlier["Patient/rex"]), !cmp.Equal(before, after), test.op.Kind, after.Version)
				checkGoesOn(t, other, observe(t, other))
				if !died {
					if step == 1 {
						t.Fatal("the write has no step at which it could die")
					}
					return
				}
			}
		})
	}
}

// observed is the record as a reader sees it.
type observed struct {
	Live     bool
	Version  int64
	Body     string
	Versions []string
}

func observe(t *testing.T, s store.Store) observed {
	t.Helper()
	var seen observed
	record, err := s.Get(t.Context(), rex(0).Key)
	var gone *store.DeletedError
	switch {
	case err == nil:
		seen.Live, seen.Version, seen.Body = true, record.Version, string(record.Body.JSON)
	case errors.As(err, &gone):
		seen.Version = gone.Version
	case !errors.Is(err, store.ErrNotFound):
		t.Fatal(err)
	}
	page, err := s.History(t.Context(), store.HistoryQuery{Key: rex(0).Key, Count: 100, Deletions: true})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	for _, r := range page.Records {
		seen.Versions = append(seen.Versions, fmt.Sprintf("%d %s %v", r.Version, r.Body.JSON, r.Deleted))
	}
	return seen
}

func checkWhole(t *testing.T, step int64, died bool, op store.Op, before, after observed) {
	t.Helper()
	same := cmp.Equal(before, after)
	if !died && same {
		t.Errorf("step %d: got the state before, want the acknowledged write", step)
	}
	if same {
		return
	}
	want := observed{}
	if op.Kind != store.Purge {
		want = observed{Version: before.Version + 1, Live: op.Kind == store.Put, Body: string(op.Body.JSON)}
		want.Versions = append([]string{fmt.Sprintf("%d %s %v", want.Version, want.Body, !want.Live)}, before.Versions...)
	}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("step %d: got neither the state before nor the one after (-after +got):\n%s", step, diff)
	}
}

// checkGoesOn checks that a write makes the next version, and that a purge leaves nothing.
func checkGoesOn(t *testing.T, s store.Store, seen observed) {
	t.Helper()
	next := mustWrite(t, s, rex(77))
	if next.Record.Version != seen.Version+1 {
		t.Errorf("got the next version %d, want %d", next.Record.Version, seen.Version+1)
	}
	after := observe(t, s)
	if len(after.Versions) != len(seen.Versions)+1 {
		t.Errorf("the history holds %v after %v", after.Versions, seen.Versions)
	}
	mustWrite(t, s, store.Op{Kind: store.Purge, Key: rex(0).Key})
	if left := observe(t, s); !cmp.Equal(left, observed{}) {
		t.Errorf("after a purge: got %+v, want nothing", left)
	}
	if again := mustWrite(t, s, rex(1)); again.Record.Version != 1 {
		t.Errorf("a record created after a purge: got version %d, want 1", again.Record.Version)
	}
	mustWrite(t, s, rex(2))
	if after := observe(t, s); len(after.Versions) != 2 {
		t.Errorf("a record created after a purge: got the history %v, want one version", after.Versions)
	}
}

// TestClaimOfADeadWriter shows that the claim of a stopped writer is held until its deadline and no
// longer. If the writer continues after that, its write fails.
func TestClaimOfADeadWriter(t *testing.T) {
	for name, before := range map[string][]store.Op{"of a create": nil, "of an update": {rex(0)}} {
		t.Run(name, func(t *testing.T) {
			namespace, key := newSite(t)
			asleep, wake := make(chan struct{}), make(chan struct{})
			var sleepy atomic.Bool
			sleeper := newEngine(t, cluster.Options{AfterStep: func(step string) {
				if step == cluster.StepClaims && sleepy.CompareAndSwap(true, false) {
					close(asleep)
					<-wake
				}
			}}).Open(namespace, key, cluster.DefaultLimits)
			for _, op := range before {
				mustWrite(t, sleeper, op)
			}
			sleepy.Store(true)
			woken := make(chan error, 1)
			go func() {
				_, err := sleeper.Write(t.Context(), []store.Op{claimed(rex(1), "line")})
				woken <- err
			}()
			<-asleep

			var later atomic.Int64
			rival := newEngine(t, cluster.Options{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }}).
				Open(namespace, key, cluster.DefaultLimits)
			bella := claimed(rex(2), "line")
			bella.Key.ID = "bella"
			_, err := rival.Write(t.Context(), []store.Op{bella})
			var held *store.ClaimError
			if !errors.As(err, &held) || held.Holder.ID != "rex" {
				t.Fatalf("before the deadline: got %v, want a ClaimError that names rex", err)
			}
			later.Store(int64(time.Minute))
			mustWrite(t, rival, bella)
			close(wake)
			if err := <-woken; !errors.As(err, &held) || held.Holder.ID != "bella" {
				t.Fatalf("the writer that woke up late: got %v, want a ClaimError that names bella", err)
			}
		})
	}
}

// TestPlaceholderMetLate shows that a writer that finds the placeholder of a create, and continues
// long after that create has ended, does not remove the history of the record.
func TestPlaceholderMetLate(t *testing.T) {
	namespace, key := newSite(t)
	sleepAt := func(at string) (site store.Store, asleep, wake chan struct{}) {
		asleep, wake = make(chan struct{}), make(chan struct{})
		var once atomic.Bool
		return newEngine(t, cluster.Options{AfterStep: func(step string) {
			if step == at && once.CompareAndSwap(false, true) {
				close(asleep)
				<-wake
			}
		}}).Open(namespace, key, cluster.DefaultLimits), asleep, wake
	}
	creator, created, finish := sleepAt(cluster.StepPlaceholder)
	late, met, goOn := sleepAt(cluster.StepPurgeMet)
	results := make(chan error, 2)
	go func() {
		_, err := creator.Write(t.Context(), []store.Op{claimed(rex(1), "line")})
		results <- err
	}()
	<-created
	go func() {
		_, err := late.Write(t.Context(), []store.Op{rex(3)})
		results <- err
	}()
	<-met
	close(finish)
	if err := <-results; err != nil {
		t.Fatal(err)
	}
	other := newEngine(t, cluster.Options{}).Open(namespace, key, cluster.DefaultLimits)
	mustWrite(t, other, rex(2))
	close(goOn)
	if err := <-results; err != nil {
		t.Fatal(err)
	}
	if seen := observe(t, other); seen.Version != 3 || len(seen.Versions) != 3 {
		t.Errorf("version %d with the history %v, want 3 whole versions", seen.Version, seen.Versions)
	}
}
