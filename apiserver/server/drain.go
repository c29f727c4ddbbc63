package server

import (
	"context"
	"net/http"
	"time"
)

const (
	// closeDelay is the time between the signal to stop and the end of the listener and of idle
	// connections. A client that sends requests more often than this closes its connection itself, as
	// closeConnections asks it to. Without the delay, a request may be on its way on a connection that
	// is closed as idle.
	closeDelay = 2 * time.Second
	// drainTime limits how long open requests may run after closeDelay.
	drainTime = 20 * time.Second
)

// closeConnections makes handler end each connection after its response once stopping is closed: by
// Connection: close in HTTP/1.1 (RFC 9112 section 9.6), by GOAWAY in HTTP/2.
func closeConnections(handler http.Handler, stopping <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-stopping:
			w.Header().Set("Connection", "close")
		default:
		}
		handler.ServeHTTP(w, r)
	})
}

// wait returns after delay, or when ctx ends.
func wait(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
