package history

import (
	"maps"
	"slices"
)

// exclusion: while one record certainly holds a line, no other one gets it.
func exclusion(records map[string]*record) []Violation {
	type claim struct {
		of *record
		op *Operation
	}
	claims := map[string][]claim{}
	for _, r := range records {
		for _, op := range r.ops {
			if op.Kind == Put && op.Outcome == Acknowledged {
				for _, line := range op.Lines {
					claims[line] = append(claims[line], claim{r, op})
				}
			}
		}
	}
	var found []Violation
	for _, line := range slices.Sorted(maps.Keys(claims)) {
		for _, held := range claims[line] {
			for _, got := range claims[line] {
				if held.of != got.of && held.op.End < got.op.Start && !held.of.mayGiveUp(line, held.op, got.op) {
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

// mayGiveUp reports whether something may have taken a line from the record between
// the operation that claimed it and the end of another one.
func (r *record) mayGiveUp(line string, since, until *Operation) bool {
	return slices.ContainsFunc(r.ops, func(op *Operation) bool {
		keeps := op == since || op.Kind == Read || op.Kind == Put && (op.Lines == nil || slices.Contains(op.Lines, line))
		return !keeps && op.possiblyDuring(since.Start, until.End)
	})
}
