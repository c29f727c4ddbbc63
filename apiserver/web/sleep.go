package web

import (
	"context"
	"time"
)

// Sleep waits for d. If ctx ends earlier, it returns ctx.Err().
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
