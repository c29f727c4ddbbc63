// Package limits limits the rate of requests by Site, by caller and by client address. It also
// limits the number of concurrent searches of a Site and of concurrent requests of a server. It
// does no I/O.
package limits

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/paddock-health/paddock/api/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/settings"
)

// Defaults of spec.limits for a Site on one API server: requests per second, and concurrent
// searches. They exceed what a clinic needs, and leave capacity for other Sites.
const (
	defaultRate     = 5000
	defaultSearches = 64
)

const (
	// maxSites is the maximum number of Sites that have a SiteLimiter, and maxCallers the maximum number
	// of callers of one Site that have a token bucket. At the limit, the least recently used one is
	// evicted. When it is created again, its buckets are full, and running searches of the Site are not
	// counted.
	maxSites, maxCallers = 8192, 2048
	// maxAddresses is the maximum number of client addresses that have token buckets. At the limit, the
	// least recently used bucket is evicted.
	maxAddresses = 16384
	// addressRate (per second) and addressBurst limit the requests from one client address that have no
	// authenticated caller. Requests beyond them are refused.
	addressRate, addressBurst = 200, 1000
)

// Rates are the limits of the requests to a Site on one API server. Requests beyond a limit fail with
// an *ExceededError.
type Rates struct {
	// Rate is the maximum average number of requests per second of the Site. Default: 5000.
	Rate int
	// CallerRate is the maximum average number of requests per second of one caller. Default: half of
	// Rate, at least 1.
	CallerRate int
	// Burst is the number of requests that the Site serves at once, in total and for each caller,
	// before the average rate applies. Default: twice Rate.
	Burst int
	// Searches is the maximum number of searches, histories and lists that run concurrently. One caller
	// may have at most three quarters of them. Further searches wait for up to maxSearchWait and then
	// fail, or fail at once if too many wait already (maxWaitersPerSlot). Default: 64.
	Searches int
}

// From returns the Rates in spec.limits of a Site. Limits that are not set have their defaults.
func From(spec v1alpha1.Limits) Rates {
	perSecond := settings.Int(spec.RequestsPerSecond, defaultRate)
	return Rates{
		Rate: perSecond, CallerRate: settings.Int(spec.CallerRequestsPerSecond, max(1, perSecond/2)),
		Burst: settings.Int(spec.Burst, 2*perSecond), Searches: settings.Int(spec.ConcurrentSearches, defaultSearches),
	}
}

// ExceededError is returned for a request that exceeds a limit of rate or concurrency.
type ExceededError struct {
	// Policy names the exceeded limit. For a rate, it is site, caller or address. For a limit of what one
	// Site may run concurrently, it is searches, exports or requests. For a limit of what all Sites
	// together may run concurrently, it is server.
	Policy string
	// Quota is the number of requests that are allowed in Window on average. It is 0 if Policy is not
	// for a rate.
	Quota  int
	Window time.Duration
	// RetryAfter is the time after which the client can retry the request.
	RetryAfter time.Duration
}

func (e *ExceededError) Error() string {
	if e.Policy == policyServer {
		return "too many requests are running on this server; retry later"
	}
	if e.Quota == 0 {
		return "too many " + e.Policy + " of this site are running; retry later"
	}
	of := e.Policy
	if of == policyAddress {
		of = "client address"
	}
	return fmt.Sprintf("too many requests: the limit of the %s is %d requests in %s on average; retry in %s",
		of, e.Quota, e.Window, e.RetryAfter.Round(time.Millisecond))
}

// RetrySeconds returns RetryAfter in whole seconds, as in the header Retry-After, and at least 1.
func (e *ExceededError) RetrySeconds() int {
	return max(1, int(math.Ceil(e.RetryAfter.Seconds())))
}

// Limiter keeps the token buckets of all sites and client addresses of one server. It is safe for
// concurrent use.
type Limiter struct {
	now       func() time.Time
	mu        sync.Mutex
	sites     *recent[string, *SiteLimiter]
	addresses *recent[string, *rate.Limiter]
}

// New returns a Limiter. now returns the current time.
func New(now func() time.Time) *Limiter {
	return &Limiter{now: now, sites: newRecent[string, *SiteLimiter](maxSites), addresses: newRecent[string, *rate.Limiter](maxAddresses)}
}

// Site returns the limiter of a Site. If rates differ from those of the previous call, the new rates
// apply to later requests, and the buckets start full.
func (l *Limiter) Site(id string, rates Rates) *SiteLimiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	site, found := l.sites.get(id)
	if !found {
		site = &SiteLimiter{now: l.now, rates: rates, all: newBucket(rates.Rate, rates.Burst), searches: newGate(rates.Searches)}
		site.callers = newRecent[string, *rate.Limiter](maxCallers)
		l.sites.add(id, site)
	}
	site.set(rates)
	return site
}

// Anonymous counts a request without an authenticated caller against the limit of its client address.
// Errors: *ExceededError.
func (l *Limiter) Anonymous(address string) error {
	l.mu.Lock()
	bucket, found := l.addresses.get(address)
	if !found {
		bucket = newBucket(addressRate, addressBurst)
		l.addresses.add(address, bucket)
	}
	l.mu.Unlock()
	return take(bucket, policyAddress, l.now())
}

// SiteLimiter limits the requests and searches of one Site. A nil *SiteLimiter has no limit. It is
// safe for concurrent use.
type SiteLimiter struct {
	now      func() time.Time
	searches *gate

	mu      sync.Mutex
	rates   Rates
	all     *rate.Limiter
	callers *recent[string, *rate.Limiter]
}

func (s *SiteLimiter) set(rates Rates) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rates == rates {
		return
	}
	s.rates = rates
	s.all = newBucket(rates.Rate, rates.Burst)
	s.callers = newRecent[string, *rate.Limiter](maxCallers)
	s.searches.resize(rates.Searches)
}

// Admit counts one request against the limits of its caller and the Site. The caller's limit is
// checked first, so that a caller who exceeds it uses up nothing of the Site's limit. Errors:
// *ExceededError.
func (s *SiteLimiter) Admit(caller string) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	all := s.all
	own, found := s.callers.get(caller)
	if !found {
		own = newBucket(s.rates.CallerRate, s.rates.Burst)
		s.callers.add(caller, own)
	}
	s.mu.Unlock()
	now := s.now()
	if err := take(own, "caller", now); err != nil {
		return err
	}
	return take(all, "site", now)
}

func newBucket(perSecond, burst int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), burst)
}

func take(bucket *rate.Limiter, policy string, now time.Time) error {
	if bucket.AllowN(now, 1) {
		return nil
	}
	perSecond := float64(bucket.Limit())
	missing := 1 - bucket.TokensAt(now)
	// Quota and Window are an average over the time in which an empty bucket fills.
	window := math.Max(1, math.Ceil(float64(bucket.Burst())/perSecond))
	return &ExceededError{
		Policy: policy, Quota: int(window * perSecond), Window: time.Duration(window) * time.Second,
		RetryAfter: time.Duration(missing / perSecond * float64(time.Second)),
	}
}
