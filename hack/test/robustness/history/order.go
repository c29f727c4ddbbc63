package history

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// event is an operation that proves that a version was there at some time between start and end. made
// reports whether the operation made the version.
type event struct {
	number     int64
	start, end time.Duration
	made       bool
	op         *Operation
}

// order finds operations that saw or made a later version than another operation that began after
// their end, and reads that saw a version before its write began.
func order(r *record) []Violation {
	var found []Violation
	for _, events := range r.events() {
		slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.number, b.number) })
		var latest *event // the event of a lower version that started last
		for from := 0; from < len(events); {
			to := from
			for to < len(events) && events[to].number == events[from].number {
				to++
			}
			level := events[from:to]
			for i := range level {
				if latest != nil && level[i].end < latest.start {
					found = append(found, r.violation(Reordered, "(%s) ended before the start of (%s), which has a lower version", level[i].op, latest.op))
				}
				found = append(found, r.foreseen(level, &level[i])...)
			}
			for i := range level {
				if latest == nil || level[i].start > latest.start {
					latest = &level[i]
				}
			}
			from = to
		}
	}
	return found
}

// foreseen finds operations that saw a version before its write began. level has the events of that
// version.
func (r *record) foreseen(level []event, made *event) []Violation {
	if !made.made {
		return nil
	}
	var found []Violation
	for i := range level {
		if level[i].end < made.start {
			found = append(found, r.violation(Reordered, "(%s) ended before the start of (%s), which wrote the version that it saw", level[i].op, made.op))
		}
	}
	return found
}

// events returns the events of the record by its lives. A purge ends a life.
func (r *record) events() map[string][]event {
	life := r.lives()
	events := map[string][]event{}
	add := func(uid string, e event) {
		name := uid
		if of, known := life[uid]; known {
			name = of
		}
		events[name] = append(events[name], e)
	}
	for _, op := range r.ops {
		switch {
		case op.Outcome == Acknowledged && op.Kind != Purge:
			if op.Version > 0 || len(r.purges) == 0 {
				add(op.UID, event{number: op.Version, start: op.Start, end: op.End, made: op.Made, op: op})
			}
		case op.Outcome == Unknown && op.Kind == Put:
			if v, ok := r.shown(op.Token); ok {
				add(v.UID, event{number: v.Number, start: op.Start, end: math.MaxInt64, made: true, op: op})
			}
		}
	}
	return events
}

// lives returns the name of the life to which each uid belongs. A deletion ends the use of a uid; a
// purge ends a life. The name of a life is its first uid.
func (r *record) lives() map[string]string {
	life := map[string]string{}
	for _, reading := range r.readings {
		for _, v := range reading.Versions {
			if reading.Versions[0].Number == 1 {
				life[v.UID] = reading.Versions[0].UID
			}
		}
	}
	return life
}

// shown returns the version that has a token, if a reading shows one.
func (r *record) shown(token string) (Version, bool) {
	for _, reading := range r.readings {
		for _, v := range reading.Versions {
			if v.Token == token && !v.Deleted {
				return v, true
			}
		}
	}
	return Version{}, false
}
