package delivery_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/delivery"
)

func TestRecentCounts(t *testing.T) {
	from := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	counts := delivery.NewRecentCounts(from)
	counts.Add(from.Add(10*time.Minute), delivery.Delivered, 3)
	counts.Add(from.Add(2*time.Minute+59*time.Second), delivery.Failed, 1)
	counts.Add(from.Add(2*time.Minute), delivery.Undelivered, 1)
	counts.Add(from.Add(2*time.Minute), delivery.Pending, 2)
	counts.Incomplete(from.Add(-time.Hour))
	want := delivery.Recent{From: from, Minutes: []delivery.Minute{
		{At: from.Add(2 * time.Minute), Pending: 2, Failed: 2}, {At: from.Add(10 * time.Minute), Delivered: 3},
	}}
	if diff := cmp.Diff(want, counts.Recent()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	counts.Incomplete(from.Add(2*time.Minute + time.Second))
	want = delivery.Recent{From: from.Add(3 * time.Minute), Minutes: want.Minutes[1:]}
	if diff := cmp.Diff(want, counts.Recent()); diff != "" {
		t.Errorf("counts without incomplete minutes (-want +got):\n%s", diff)
	}
}
