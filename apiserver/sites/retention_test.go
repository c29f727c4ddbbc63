package sites

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sitesv1 "github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

func TestRetentionOf(t *testing.T) {
	hours := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Hour} }
	for name, test := range map[string]struct {
		spec *sitesv1.Retention
		want store.Retention
	}{
		"none": {nil, store.Retention{}},
		"some": {&sitesv1.Retention{Versions: hours(2)}, store.Retention{Versions: 2 * time.Hour}},
		"all": {
			&sitesv1.Retention{Tombstones: hours(1), Versions: hours(2), Deliveries: hours(3), Audit: hours(24)},
			store.Retention{Tombstones: time.Hour, Versions: 2 * time.Hour, Deliveries: 3 * time.Hour},
		},
	} {
		if got := retentionOf(test.spec); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
	audit := sitesv1.Audit{Retention: hours(48)}
	for retention, want := range map[*sitesv1.Retention]time.Duration{
		nil: 48 * time.Hour, {Versions: hours(1)}: 48 * time.Hour, {Audit: hours(72)}: 72 * time.Hour,
	} {
		if got := auditSettings(&audit, retention).Retention; got != want {
			t.Errorf("audit retention with %+v: got %s, want %s", retention, got, want)
		}
	}
}

// TestCutoffs tests that what has no retention has no cutoff.
func TestCutoffs(t *testing.T) {
	now := time.Date(2026, 11, 24, 4, 0, 0, 0, time.UTC)
	if got := (store.Retention{}).Cutoffs(now); got != (store.Cutoffs{}) {
		t.Errorf("without retention: got %+v, want no cutoffs", got)
	}
	got := store.Retention{Versions: time.Hour, Deliveries: time.Hour}.Cutoffs(now)
	if want := (store.Cutoffs{Versions: now.Add(-time.Hour)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
