package sites

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
)

func TestNearLimit(t *testing.T) {
	condition := func(status metav1.ConditionStatus) *metav1.Condition { return &metav1.Condition{Status: status} }
	near, within := condition(metav1.ConditionTrue), condition(metav1.ConditionFalse)
	for name, test := range map[string]struct {
		records, bytes int64
		current        *metav1.Condition
		want           metav1.ConditionStatus // "" for no condition
	}{
		"never near":                 {records: 79, want: ""},
		"records from 80 %":          {records: 80, want: metav1.ConditionTrue},
		"bytes from 80 %":            {bytes: 800, want: metav1.ConditionTrue},
		"stays near above 75 %":      {records: 75, current: near, want: metav1.ConditionTrue},
		"is within below 75 %":       {records: 74, bytes: 749, current: near, want: metav1.ConditionFalse},
		"does not flap back at 79 %": {records: 79, current: within, want: metav1.ConditionFalse},
		"near again":                 {records: 80, current: within, want: metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			got := nearLimit(store.Stats{Counted: time.Now(), Records: test.records, MaxRecords: 100, Bytes: test.bytes, MaxBytes: 1000}, test.current)
			switch {
			case got == nil && test.want != "":
				t.Errorf("no condition, want %s", test.want)
			case got != nil && got.Status != test.want:
				t.Errorf("status %s, want %q", got.Status, test.want)
			}
		})
	}
}

// TestUsageConditionBeforeIndex shows that a Site that was near a limit keeps its condition while a
// starting server has not read the records yet.
func TestUsageConditionBeforeIndex(t *testing.T) {
	engine, err := cluster.New(&rest.Config{}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	near := &metav1.Condition{Status: metav1.ConditionTrue}
	if got := nearLimit(engine.Open("oak", "k", cluster.DefaultLimits).Stats(), near); got != nil {
		t.Errorf("status %s, want no condition", got.Status)
	}
}
