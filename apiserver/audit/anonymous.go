package audit

import (
	"net/http"
	"slices"
	"time"
)

const (
	// anonymousPerHour is how many refused or failed requests without an authenticated caller one Log
	// stores individually in an hour. Further requests are only counted. With a summary each
	// summaryInterval, three servers store less than a third of the 32 MiB (compressed) that the
	// cluster engine keeps for a Site, within the default retention of 90 days.
	anonymousPerHour = 30
	// summaryInterval is how often the counted requests are stored, as one entry for each status.
	// If the server crashes, the requests counted since the last summary are lost.
	summaryInterval = 10 * time.Minute
)

// anonymous is kube-apiserver's name for callers without credentials.
const anonymous = "system:anonymous"

// anonymousLimit limits the entries of requests without an authenticated caller. Otherwise any client
// could fill the log.
type anonymousLimit struct {
	// hour is when the current hour began, and stored how many entries were stored in it.
	hour   time.Time
	stored int
	// counted are the summaries of requests that were not stored individually, by status.
	counted map[int]*Entry
}

// isAnonymousFailure reports whether the entry is about a refused or failed request without an
// authenticated caller. Clients can cause failures, too: a token of an issuer whose keys are
// unknown gets 503.
func (e *Entry) isAnonymousFailure() bool {
	return (e.Caller == "" || e.Caller == anonymous) && e.Status >= http.StatusBadRequest
}

// admit returns the entries to store, and counts the requests of the remaining entries.
func (s *anonymousLimit) admit(entries []*Entry) []*Entry {
	if !slices.ContainsFunc(entries, (*Entry).isAnonymousFailure) {
		return entries // avoids a copy in the usual case
	}
	kept := make([]*Entry, 0, len(entries))
	for _, e := range entries {
		if !e.isAnonymousFailure() || s.admits(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

func (s *anonymousLimit) admits(e *Entry) bool {
	if since := e.Time.Sub(s.hour); since < 0 || since >= time.Hour {
		s.hour, s.stored = e.Time, 0
	}
	if s.stored < anonymousPerHour {
		s.stored++
		return true
	}
	summary := s.counted[e.Status]
	if summary == nil {
		if s.counted == nil {
			s.counted = map[int]*Entry{}
		}
		summary = &Entry{ID: newID(), Site: e.Site, Method: "other", Status: e.Status, Rule: e.Rule}
		s.counted[e.Status] = summary
	}
	summary.Time = e.Time
	summary.Requests++
	return false
}

// take returns and removes the summaries of the requests counted since the last call.
func (s *anonymousLimit) take() []*Entry {
	var summaries []*Entry
	for _, summary := range s.counted {
		summaries = append(summaries, summary)
	}
	s.counted = nil
	return summaries
}
