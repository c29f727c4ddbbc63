package limits

import (
	"sync"
	"time"
)

// inflightRetry is the time after which a client can retry a request that exceeds the limit of an
// Inflight. kube-apiserver answers with the same time.
const inflightRetry = time.Second

const policyServer, policyAddress = "server", "address"

// Inflight limits the number of concurrent requests of one server, or the sum of their weights.
// Without a limit, an overloaded server shares its processors among thousands of requests, so that
// each takes long and clients give up on most. No Site has more than maxShare of the limit, because
// the requests of a Site whose storage is slow could otherwise use all of it. It is safe for
// concurrent use.
type Inflight struct {
	max     int
	mu      sync.Mutex
	running int
	// sites is the number of running requests by siteID, or the sum of their weights.
	sites map[string]int
}

// NewInflight returns an Inflight that allows a maximum number of concurrent requests, or a maximum
// sum of their weights. 0 means no limit.
func NewInflight(maximum int) *Inflight {
	return &Inflight{max: maximum, sites: map[string]int{}}
}

// Enter counts a request to a Site, or to a path of no Site if siteID is empty. Requests to paths of
// no Site have the limit of one Site together. The function that calls Enter must call leave after the
// request. Further calls of leave have no effect. Errors: *ExceededError.
func (l *Inflight) Enter(siteID string) (leave func(), err error) { return l.EnterWeighted(siteID, 1) }

// EnterWeighted is like Enter, and counts the request as weight requests. Errors: *ExceededError.
func (l *Inflight) EnterWeighted(siteID string, weight int) (leave func(), err error) {
	if l.max == 0 {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.running+weight > l.max:
		return nil, &ExceededError{Policy: policyServer, RetryAfter: inflightRetry}
	case l.sites[siteID]+weight > maxShare(l.max):
		return nil, &ExceededError{Policy: "requests", RetryAfter: inflightRetry}
	}
	l.running += weight
	l.sites[siteID] += weight
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.running -= weight
		if l.sites[siteID] -= weight; l.sites[siteID] == 0 {
			delete(l.sites, siteID)
		}
	}), nil
}
