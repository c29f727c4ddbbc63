package postgres

import (
	"testing"
	"time"
)

func TestLateHits(t *testing.T) {
	l := &lateHits{}
	if got := l.settledWatermark(0); got != 0 {
		t.Errorf("no watermark was read: got %d, want 0", got)
	}
	l.noteWatermark(9_000, time.Now())
	l.noteWatermark(10_000, time.Now())
	for written, want := range map[int64]int64{0: 10_000, 9_000: 10_000, 9_001: 0, 10_000: 0, 11_000: 0} {
		if got := l.settledWatermark(written); got != want {
			t.Errorf("written at %d: got %d, want %d", written, got, want)
		}
	}
	l.note(0, 9_500)
	if got := l.settledWatermark(0); got != 0 {
		t.Errorf("a hit at 9500: got %d, want 0", got)
	}
	l = &lateHits{}
	l.noteWatermark(10_000, time.Now().Add(-settledTTL-time.Second))
	if got := l.settledWatermark(0); got != 0 {
		t.Errorf("an old watermark: got %d, want 0", got)
	}
	for _, step := range []struct {
		late, want int
		few        bool
	}{{0, 0, true}, {8, 16, true}, {3, 8, true}, {0, 4, true}, {0, 2, true}, {0, 0, true}, {30, maxExpectedLate, true}, {100, 0, false}, {0, maxExpectedLate, true}} {
		l.note(step.late, 0)
		if got, few := l.expected(); got != step.want || few != step.few {
			t.Errorf("%d late hits: got %d expected ones, few %t, want %d, %t", step.late, got, few, step.want, step.few)
		}
	}
}
