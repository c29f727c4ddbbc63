package history

import (
	"maps"
	"math"
	"slices"
	"time"
)

// exclusion finds lines that a record got while another record certainly held them.
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
					found = append(found, held.of.violation(DoubleBooked, "%s is held both by (%s) and by (%s)", line, held.op, got.op))
				}
			}
		}
	}
	return found
}

// uniqueness finds creates under the same criteria that made more than one record. It does not matter
// whether the records are deleted later.
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
				found = append(found, r.violation(Doubled, "%s and %s were both created under the criteria %s", name, other, op.Criteria))
			}
			made[op.Criteria] = name
		}
	}
	return found
}

// wroteBy returns the time by which a Put had certainly happened: the end of an acknowledged Put, or,
// for an unknown outcome, the end of the first read or reading that showed its token. certain is false
// if there is no such time.
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

// mayGiveUp reports whether an operation may have taken a line from the record between the start of
// the operation that claimed the line and a later time.
func (r *record) mayGiveUp(line string, since *Operation, until time.Duration) bool {
	return slices.ContainsFunc(r.ops, func(op *Operation) bool {
		keeps := op == since || op.Kind == Read || op.Kind == Put && (op.Lines == nil || slices.Contains(op.Lines, line))
		return !keeps && op.possiblyDuring(since.Start, until)
	})
}
