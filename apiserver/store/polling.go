package store

import (
	"slices"
	"time"
)

// ByTime reports whether the answer to a query tells a poller up to when it knows of all
// writes: the query asks for a time of update, or for the order of it.
func (q Query) ByTime() bool {
	return slices.ContainsFunc(q.Sort, func(part Sort) bool { return part.Field == SortUpdated }) ||
		slices.ContainsFunc(q.Types, func(typeName string) bool { return asksTime(q.WhereOf(typeName)) })
}

// asksTime reports whether a record's own time of update decides on a condition.
func asksTime(condition Condition) bool {
	switch condition := condition.(type) {
	case UpdatedIn:
		return true
	case All:
		return slices.ContainsFunc(condition, asksTime)
	case Any:
		return slices.ContainsFunc(condition, asksTime)
	case Not:
		return asksTime(condition.Condition)
	default:
		return false
	}
}

// Before is the query restricted to what was updated before a time.
func (q Query) Before(until time.Time) Query {
	updated := UpdatedIn{Until: until}
	if q.Where == nil {
		q.Where = updated
	} else {
		q.Where = All{q.Where, updated}
	}
	return q
}
