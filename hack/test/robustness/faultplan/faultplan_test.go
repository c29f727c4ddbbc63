package faultplan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/hack/test/robustness/faultplan"
)

// TestPlans checks that the plan of a seed stays the same, and that 200 seeds have every kind of fault.
func TestPlans(t *testing.T) {
	for _, engine := range []faultplan.Engine{faultplan.Cluster, faultplan.Postgres} {
		runs := map[faultplan.Kind]int{}
		for seed := uint64(1); seed <= 200; seed++ {
			plan := faultplan.New(engine, seed, nil)
			if diff := cmp.Diff(plan, faultplan.New(engine, seed, nil)); diff != "" {
				t.Errorf("%s seed %d: plans differ:\n%s", engine, seed, diff)
			}
			if len(plan) < 2 || len(plan) > 4 {
				t.Errorf("%s seed %d: %d faults, want 2 to 4", engine, seed, len(plan))
			}
			for _, f := range plan {
				if end := f.Offset + f.Duration; f.Offset < 0 || f.Duration <= 0 || end > 5*time.Second {
					t.Errorf("%s seed %d: %s, want an end after at most 5 s", engine, seed, f)
				}
			}
			for _, kind := range faultplan.Kinds(engine) {
				if plan.Has(kind) {
					runs[kind]++
				}
			}
		}
		for _, kind := range faultplan.Kinds(engine) {
			if runs[kind] < 20 {
				t.Errorf("%s: %s is in %d of 200 plans, want at least 20", engine, kind, runs[kind])
			}
		}
	}
}

// TestPlanText pins plans, because the ledger refers to them by seed.
func TestPlanText(t *testing.T) {
	got := map[string]string{
		"cluster 1":  faultplan.New(faultplan.Cluster, 1, nil).String(),
		"postgres 1": faultplan.New(faultplan.Postgres, 1, nil).String(),
		"none":       faultplan.New(faultplan.Postgres, 1, []faultplan.Kind{}).String(),
	}
	want := map[string]string{
		"cluster 1":  "pause apiserver at 0.5s for 0.3s, kill etcd at 0.7s for 1.2s, pause apiserver at 1.5s for 0.9s",
		"postgres 1": "kill apiserver-2 at 1.6s for 0.8s, kill postgres at 1.7s for 1.6s, pause apiserver-2 at 2.9s for 0.2s",
		"none":       "none",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plans (-want +got):\n%s", diff)
	}
}

func TestPlanOfKinds(t *testing.T) {
	wanted := []faultplan.Kind{"cut-postgres"}
	for seed := uint64(1); seed <= 20; seed++ {
		plan := faultplan.New(faultplan.Postgres, seed, wanted)
		if len(plan) < 2 || slices.ContainsFunc(plan, func(f faultplan.Fault) bool { return f.Kind != wanted[0] }) {
			t.Errorf("seed %d: plan %s, want faults of the kind %s only", seed, plan, wanted[0])
		}
	}
}

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string][]uint64{"": nil, "7": {7}, "1-3,9": {1, 2, 3, 9}} {
		if got, err := faultplan.ParseSeeds(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"a", "1-", "-3", "3-1", "1,,2", "1-9999999"} {
		if got, err := faultplan.ParseSeeds(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
