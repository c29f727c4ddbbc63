package main

import (
	"context"
	"sync"
	"time"
)

const (
	// openInterval is the interval in which an open loop sends the requests that are due.
	openInterval = 2 * time.Millisecond
	// openInFlight is the maximum number of concurrent requests of an open loop, each with a
	// connection of its own. Requests beyond the maximum are not sent. An API server closes
	// connections beyond 2,000 of one client address, and idle connections count too.
	openInFlight = 1500
	// openTimeout is how long a client waits for a response. An API server answers within 30 s.
	openTimeout = time.Minute
)

// sent is one request of an open loop.
type sent struct {
	at   time.Time
	took time.Duration
	err  error
}

// openLoop sends requests at a rate, whether or not earlier requests have a response. It returns when
// every request has a response or has failed. n of the requests begins at first. unsent is the number
// of requests that were not sent because openInFlight requests were in flight.
func openLoop(ctx context.Context, perSecond float64, length time.Duration, first int, send func(ctx context.Context, n int) error) (all []sent, unsent int) {
	var mu sync.Mutex
	var group sync.WaitGroup
	places := make(chan struct{}, openInFlight)
	began, started := time.Now(), 0
	for tick := time.NewTicker(openInterval); ctx.Err() == nil && time.Since(began) < length; <-tick.C {
		for ; started < int(time.Since(began).Seconds()*perSecond); started++ {
			select {
			case places <- struct{}{}:
			default:
				unsent++
				continue
			}
			n := first + started
			group.Go(func() {
				defer func() { <-places }()
				request, cancel := context.WithTimeout(ctx, openTimeout)
				defer cancel()
				s := sent{at: time.Now()}
				s.err = send(request, n)
				s.took = time.Since(s.at)
				mu.Lock()
				all = append(all, s)
				mu.Unlock()
			})
		}
	}
	group.Wait()
	return all, unsent
}
