package store

import (
	"slices"
	"time"
)

// ByTime reports whether the query has a condition on the time of update, or is sorted by it.
// Clients may poll with such a query, so it must not return records that were updated at or after
// the watermark (Store.Search).
func (q Query) ByTime() bool {
	return slices.ContainsFunc(q.Sort, func(part Sort) bool { return part.Field == SortUpdated }) ||
		slices.ContainsFunc(q.Types, func(typeName string) bool { return testsUpdated(q.WhereOf(typeName)) })
}

// testsUpdated reports whether a condition tests the time of update of the record itself.
func testsUpdated(condition Condition) bool {
	switch condition := condition.(type) {
	case UpdatedIn:
		return true
	case All:
		return slices.ContainsFunc(condition, testsUpdated)
	case Any:
		return slices.ContainsFunc(condition, testsUpdated)
	case Not:
		return testsUpdated(condition.Condition)
	default:
		return false
	}
}

// Before returns the query restricted to records updated before a time. If Where is an UpdatedIn,
// or an All with one, that range is narrowed. Otherwise an UpdatedIn is added.
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
