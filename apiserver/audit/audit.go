// Package audit records who accessed which record of a Site, and how. The layers that handle a
// request add to its Recorder. When the response starts, the Recorder's entries go to the Site's
// Log and, as lines of JSON, to an output. Entries have no search values, bodies or tokens. Storage
// engines implement Storage. See docs/decisions/0015-audit.md.
package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrUnavailable is returned for a request that is refused because its audit entries cannot be
// stored.
var ErrUnavailable = errors.New("the audit log cannot be written, and this site serves no requests that it cannot record (spec.audit.onFailure)")

// ErrWritten wraps ErrUnavailable. It is returned if the entries of a request cannot be stored after
// its write, which may have succeeded.
var ErrWritten = fmt.Errorf("%w; the write may have succeeded", ErrUnavailable)

// Storage stores the audit entries of one Site. Its methods are safe for concurrent use.
type Storage interface {
	// Append stores all entries durably, or returns an error. Search returns an entry once even if it
	// was appended again.
	Append(ctx context.Context, entries []*Entry) error
	// Search returns the entries that the query selects, newest first. Errors: ErrTooSlow,
	// store.ErrUnavailable.
	Search(ctx context.Context, query Query) ([]Entry, error)
	// Trim deletes the entries that are older than retention. An engine that deletes entries by the
	// hour or by the day keeps some of them for up to an hour or a day longer.
	Trim(ctx context.Context, retention time.Duration) error
}

// ErrTooSlow is returned for a query that exceeds its time limit.
var ErrTooSlow = errors.New("the query of the audit log takes too long; restrict it to a shorter time, or to one record or caller")

// Query selects audit entries. A field with the zero value does not restrict the result.
type Query struct {
	// From and Until restrict the time: From ≤ time < Until.
	From, Until time.Time
	// Entity selects entries about a record, in the form that the function Entity returns.
	Entity string
	// Caller is the name of the caller.
	Caller string
	// Interactions are the values of Entry.Interaction to return. If empty, entries of all
	// interactions are returned.
	Interactions []string
	Action       Action
	// Outcomes are the outcomes to return. If empty, entries of all outcomes are returned.
	Outcomes []Outcome
	// After is the position of the last entry of the previous page.
	After Position
	// Count is the maximum number of entries, at least 1.
	Count int
}

// Position is the place of an entry in the order of a Search, newest first. As Query.After, the zero
// value is the start. Before does not treat the zero value specially.
type Position struct {
	// Time is in microseconds since 1970.
	Time int64
	ID   int64
}

// Position returns the position of the entry.
func (e *Entry) Position() Position { return Position{Time: e.Time.UnixMicro(), ID: e.ID} }

// Before reports whether p comes before other in the order of a Search: newer entries come first.
func (p Position) Before(other Position) bool {
	if p.Time != other.Time {
		return p.Time > other.Time
	}
	return p.ID > other.ID
}

// Matches reports whether the query selects an entry, regardless of Count.
func (q Query) Matches(e *Entry) bool {
	return (q.From.IsZero() || !e.Time.Before(q.From)) && (q.Until.IsZero() || e.Time.Before(q.Until)) &&
		(q.Caller == "" || q.Caller == e.Caller) &&
		(q.Action == "" || q.Action == e.Action) &&
		(len(q.Interactions) == 0 || slices.Contains(q.Interactions, e.Interaction)) &&
		(len(q.Outcomes) == 0 || slices.Contains(q.Outcomes, e.Outcome())) &&
		(q.Entity == "" || e.Records.have(q.Entity)) &&
		(q.After == Position{} || q.After.Before(e.Position()))
}
