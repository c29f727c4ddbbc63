// Package traffic counts the requests of each site to one API server, by minute, for the last hour.
// It does no I/O.
package traffic

import (
	"slices"
	"sync"
	"time"
)

const (
	// Step is the length of the interval of a Sample.
	Step = time.Minute
	// kept is how long samples are kept.
	kept = time.Hour
)

// Bounds are the upper limits of the classes of Sample.Durations, which are those of the histogram
// paddock_http_request_duration_seconds without the shortest ones. One more class has all longer
// durations.
var Bounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 10 * time.Second,
}

// Sample has the numbers of requests that ended within one Step.
type Sample struct {
	// At is the start of the Step.
	At time.Time
	// Requests is the number of all requests, ClientErrors of those with a status of 400 to 499, and
	// ServerErrors of those with a status of 500 or more.
	Requests, ClientErrors, ServerErrors int64
	// Durations has the number of requests in each class of duration. See Bounds.
	Durations [len(Bounds) + 1]int64
}

// Report has the requests to one site that a Recorder counted in the last hour.
type Report struct {
	// Server is the name of the API server.
	Server string
	// Since is when the API server began to count.
	Since time.Time
	// Samples are in ascending order of time. Steps without requests are omitted.
	Samples []Sample
}

// Recorder counts the requests of all sites to one API server. It is safe for concurrent use.
type Recorder struct {
	server string
	now    func() time.Time
	since  time.Time

	mu    sync.Mutex
	sites map[string][]Sample
	// forgotten is the start of the Step in which old samples of all sites were last removed.
	forgotten time.Time
}

// New returns a Recorder. server is the name of the API server. now returns the current time.
func New(server string, now func() time.Time) *Recorder {
	return &Recorder{server: server, now: now, since: now(), sites: map[string][]Sample{}}
}

// Record counts a request to a site. took is the duration of the request. The site must exist,
// because each siteID occupies memory for an hour.
func (r *Recorder) Record(siteID string, status int, took time.Duration) {
	at := r.now().Truncate(Step)
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.After(r.forgotten) {
		r.forget(at)
	}
	samples := r.sites[siteID]
	if len(samples) == 0 || samples[len(samples)-1].At.Before(at) {
		samples = append(samples, Sample{At: at})
		r.sites[siteID] = samples
	}
	sample := &samples[len(samples)-1]
	sample.Requests++
	switch {
	case status >= 500:
		sample.ServerErrors++
	case status >= 400:
		sample.ClientErrors++
	}
	class, _ := slices.BinarySearch(Bounds[:], took) // a duration that equals a bound is in its class
	sample.Durations[class]++
}

// forget removes the samples that are older than kept.
func (r *Recorder) forget(at time.Time) {
	for siteID, samples := range r.sites {
		if samples = newer(samples, at.Add(-kept)); len(samples) == 0 {
			delete(r.sites, siteID)
		} else {
			r.sites[siteID] = samples
		}
	}
	r.forgotten = at
}

// newer returns a copy of the samples from a time.
func newer(samples []Sample, from time.Time) []Sample {
	first, _ := slices.BinarySearchFunc(samples, from, func(s Sample, t time.Time) int { return s.At.Compare(t) })
	return slices.Clone(samples[first:])
}

// Report returns the requests to a site that were counted in the last hour.
func (r *Recorder) Report(siteID string) Report {
	from := r.now().Truncate(Step).Add(-kept)
	r.mu.Lock()
	defer r.mu.Unlock()
	return Report{Server: r.server, Since: r.since, Samples: newer(r.sites[siteID], from)}
}
