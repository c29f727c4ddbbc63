package history

import (
	"maps"
	"math"
	"slices"
	"time"
)

// exclusion: while one record certainly holds a line, no other one gets it.
func exclusion(records map[string]*record) []Violation {
	type claim struct {
		of   *record
		op   *Operation
		from time.Duration
	}
	claims := map[string][]claim{}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		r := records[name]
		for _, op := range r.ops {
			from, certain := r.wroteBy(op)
			for _, line := range op.Lines {
				if certain {
					claims[line] = append(claims[line], claim{r, op, from})
				}
			}
		}
	}
	var found []Violation
	for _, line := range slices.Sorted(maps.Keys(claims)) {
		for _, held := range claims[line] {
			for _, got := range claims[line] {
				if held.of != got.of && held.from < got.op.Start && !held.of.mayGiveUp(line, held.op, got.from) {
					found = append(found, held.of.violation(DoubleBooked, "%s, holds %s, and so does %s", held.op, line, got.op))
				}
			}
		}
	}
	return found
}

// uniqueness: creates under the same criteria make one record, in whatever state
// it is found in the end.
func uniqueness(records map[string]*record) []Violation {
	made := map[string]string{}
	var found []Violation
	for _, name := range slices.Sorted(maps.Keys(records)) {
		r := records[name]
		for _, op := range r.ops {
			if op.Kind != Put || op.Criteria == "" {
				continue
			}
			if _, ok := r.shown(op.Token); !ok {
				continue
			}
			if other, again := made[op.Criteria]; again {
				found = append(found, r.violation(Doubled, "%s, and %s too, were created under %s", name, other, op.Criteria))
			}
			made[op.Criteria] = name
		}
	}
	return found
}

// wroteBy tells by when a Put had certainly happened: it was acknowledged, or
// somebody saw what it wrote.
func (r *record) wroteBy(op *Operation) (at time.Duration, certain bool) {
	if op.Kind != Put || op.Outcome == Refused {
		return 0, false
	}
	if op.Outcome == Acknowledged {
		return op.End, true
	}
	at = math.MaxInt64
	for _, read := range r.ops {
		if read.Kind == Read && read.Outcome == Acknowledged && read.Token == op.Token {
			at = min(at, read.End)
		}
	}
	for _, reading := range r.readings {
		if slices.ContainsFunc(reading.Versions, func(v Version) bool { return v.Token == op.Token }) {
			at = min(at, reading.End)
		}
	}
	return at, at < math.MaxInt64
}

// mayGiveUp reports whether something may have taken a line from the record between
// the operation that claimed it and a later time.
func (r *record) mayGiveUp(line string, since *Operation, until time.Duration) bool {
	return slices.ContainsFunc(r.ops, func(op *Operation) bool {
		keeps := op == since || op.Kind == Read || op.Kind == Put && (op.Lines == nil || slices.Contains(op.Lines, line))
		return !keeps && op.possiblyDuring(since.Start, until)
	})
}
