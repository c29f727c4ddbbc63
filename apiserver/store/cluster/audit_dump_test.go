package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/audit/audittest"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

// TestAuditDump compares the entries of Dump and Positions with those that two replicas have appended.
func TestAuditDump(t *testing.T) {
	namespace, key := newSite(t)
	first, second := newEngine(t, cluster.Options{}), newEngine(t, cluster.Options{})
	want := map[audit.Position]bool{}
	hours := map[time.Time]map[audit.Position]bool{}
	for _, engine := range []*cluster.Cluster{first, second} {
		log := engine.Open(namespace, key, cluster.DefaultLimits).Audit()
		var entries []*audit.Entry
		for n := range 30 {
			e := audittest.Entry(time.Duration(n)*10*time.Minute, nil)
			entries = append(entries, e)
			want[e.Position()] = true
			hour := e.Time.Truncate(time.Hour)
			if hours[hour] == nil {
				hours[hour] = map[audit.Position]bool{}
			}
			hours[hour][e.Position()] = true
		}
		if err := log.Append(t.Context(), entries); err != nil {
			t.Fatal(err)
		}
	}
	log := first.Open(namespace, key, cluster.DefaultLimits).Audit().(interface {
		Dump(ctx context.Context, visit func([]audit.Entry) error) error
		Positions(ctx context.Context, hour time.Time) (map[audit.Position]bool, error)
	})
	got := map[audit.Position]bool{}
	err := log.Dump(t.Context(), func(entries []audit.Entry) error {
		for i := range entries {
			got[entries[i].Position()] = true
		}
		return nil
	})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("entries (-want +got):\n%s, error %v", diff, err)
	}
	for hour, want := range hours {
		got, err := log.Positions(t.Context(), hour)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("hour %v (-want +got):\n%s, error %v", hour, diff, err)
		}
	}
}
