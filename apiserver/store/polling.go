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

// Before is the query restricted to what was updated before a time. Where the query asks for a
// range of times already, that range becomes narrower.
func (q Query) Before(until time.Time) Query {
	before := TimeRange{Until: until}
	switch where := q.Where.(type) {
	case nil:
		q.Where = UpdatedIn(before)
	case All:
		where = slices.Clone(where)
		i := slices.IndexFunc(where, func(c Condition) bool { _, is := c.(UpdatedIn); return is })
		if i < 0 {
			where = append(where, UpdatedIn(before))
		} else {
			where[i] = UpdatedIn(before.Intersection(TimeRange(where[i].(UpdatedIn))))
		}
		q.Where = where
	case UpdatedIn:
		q.Where = UpdatedIn(before.Intersection(TimeRange(where)))
	default:
		q.Where = All{where, UpdatedIn(before)}
	}
	return q
}
