package cluster

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestWatermarkAfterSlowClock shows that the watermark is later than an own write of the same millisecond,
// although the clock is read so slowly that the wait is over.
func TestWatermarkAfterSlowClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, reads := time.Now().UTC(), 0
		s := &Store{index: &index{}, engine: &Cluster{now: func() time.Time {
			at := time.Now()
			if reads++; reads == 1 {
				time.Sleep(2 * maxWatermarkWait)
			}
			return at
		}}}
		if got, err := s.watermark(t.Context(), own); err != nil || !got.After(own) {
			t.Errorf("watermark %s, %v, want one after %s", got, err, own)
		}
	})
}
