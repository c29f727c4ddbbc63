package postgres

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-health/paddock/apiserver/store/batcher"
)

// TestWatermarkAfterSlowAnswer shows that the watermark is later than an own write of the same millisecond,
// although the database answers so slowly that the wait is over.
func TestWatermarkAfterSlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, reads := time.Now().UnixMilli(), 0
		s := &Store{watermarks: batcher.New(time.Minute, func(_ context.Context, batch []*pendingWatermark) {
			at := time.Now().UnixMilli()
			if reads++; reads == 1 {
				time.Sleep(2 * maxWatermarkWait)
			}
			for _, pending := range batch {
				pending.ms, pending.err = at, nil
			}
		})}
		if got, err := s.watermark(t.Context(), own); err != nil || got <= own {
			t.Errorf("watermark %d, %v, want one after %d", got, err, own)
		}
	})
}
