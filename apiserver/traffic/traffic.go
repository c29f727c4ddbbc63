// Package traffic counts the requests of each site to one API server, by minute, for the last hour.
// It does no I/O.
package traffic

import (
	"slices"
	"sync"
	"time"
)

const (
	// Step is the duration of a Sample.
	Step = time.Minute
	// kept is how long samples are kept.
	kept = time.Hour
)

// Bounds are the upper limits of the classes of durations: those of the histogram
// paddock_http_request_duration_seconds, without the shortest ones. A last class has the longer
// durations.
var Bounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 10 * time.Second,
}

// Sample is the number of requests that ended within one Step.
type Sample struct {
	// At is the start of the Step.
	At time.Time
	// Requests counts all requests, ClientErrors those with a status of 400 to 499, and ServerErrors
	// those with a status from 500.
	Requests, ClientErrors, ServerErrors int64
	// Durations counts the requests by class of duration, see Bounds.
	Durations [len(Bounds) + 1]int64
}

// Report is what a Recorder has counted of one site.
type Report struct {
	// Server is the name of the API server, and Since the time from which it has counted.
	Server string
	Since  time.Time
	// Samples are in ascending order of time. Times without requests are omitted.
	Samples []Sample
}

// Recorder counts the requests of all sites to one API server. It is safe for concurrent use.
type Recorder struct {
	server string
	now    func() time.Time
	since  time.Time

	mu    sync.Mutex
	sites map[string][]Sample
	// forgotten is the Step in which samples of sites without requests were last removed.
	forgotten time.Time
}

// New returns a Recorder of the API server with a name. It gets the time from now.
func New(server string, now func() time.Time) *Recorder {
	return &Recorder{server: server, now: now, since: now(), sites: map[string][]Sample{}}
}

// Record counts a request of a site. The site must exist, because each one occupies memory for an
// hour.
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

// Report returns what was counted of a site in the last hour.
func (r *Recorder) Report(siteID string) Report {
	from := r.now().Truncate(Step).Add(-kept)
	r.mu.Lock()
	defer r.mu.Unlock()
	return Report{Server: r.server, Since: r.since, Samples: newer(r.sites[siteID], from)}
}
