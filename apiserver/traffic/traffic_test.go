package traffic_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/traffic"
)

func TestReport(t *testing.T) {
	start := time.Date(2026, 3, 1, 10, 0, 30, 0, time.UTC)
	now := start
	r := traffic.New("server-1", func() time.Time { return now })
	r.Record("oak", 200, time.Millisecond)
	r.Record("oak", 404, 5*time.Millisecond)
	r.Record("oak", 503, time.Minute)
	r.Record("elm", 200, time.Millisecond)
	now = start.Add(2 * time.Minute)
	r.Record("oak", 201, 6*time.Millisecond)

	first := traffic.Sample{At: start.Truncate(time.Minute), Requests: 3, ClientErrors: 1, ServerErrors: 1}
	first.Durations[0], first.Durations[len(traffic.Bounds)] = 2, 1
	second := traffic.Sample{At: first.At.Add(2 * time.Minute), Requests: 1}
	second.Durations[1] = 1
	want := traffic.Report{Server: "server-1", Since: start, Samples: []traffic.Sample{first, second}}
	if diff := cmp.Diff(want, r.Report("oak")); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if got := r.Report("yew").Samples; len(got) != 0 {
		t.Errorf("samples of a site without requests: %v", got)
	}

	now = start.Add(61 * time.Minute)
	want.Samples = []traffic.Sample{second}
	if diff := cmp.Diff(want, r.Report("oak")); diff != "" {
		t.Errorf("report an hour later (-want +got):\n%s", diff)
	}
	r.Record("yew", 200, 0)
	if got := r.Report("elm").Samples; len(got) != 0 {
		t.Errorf("samples after an hour without requests: %v", got)
	}
	if got := traffic.Remembered(r); got != 2 {
		t.Errorf("sites that are remembered: got %d, want oak and yew", got)
	}
}
