package history

import "time"

// winners: who was told that a condition held found the record so, and of those
// who asked for the same version one at most won.
func winners(r *record) []Violation {
	type prize struct {
		uid     string
		version int64
	}
	var found []Violation
	won := map[prize]*Operation{}
	for _, op := range r.ops {
		if op.Outcome != Acknowledged || !op.Made || op.If == (Condition{}) {
			continue
		}
		if op.If.Version != 0 {
			if op.Version != op.If.Version+1 {
				found = append(found, r.violation(WrongWinner, "%s", op))
			}
			this := prize{op.UID, op.If.Version}
			if other := won[this]; other != nil {
				found = append(found, r.violation(WrongWinner, "%s, and %s", other, op))
			}
			won[this] = op
		}
		for _, reading := range r.readings {
			before, ok := reading.at(op.Version - 1)
			fits := before.Deleted == op.If.Absent || op.Kind == Put && op.If.Version != 0 // that of a deletion: it is brought back
			if ok && r.mustShow(reading, op) && !fits {
				found = append(found, r.violation(WrongWinner, "%s, but before: %s", op, describe(before, ok)))
			}
		}
	}
	return found
}

// refusals: who was told that a condition does not hold did not find the record in
// the one state, all the time, in which it does. Records that are purged are not
// looked at: their version numbers come again.
func refusals(r *record) []Violation {
	if len(r.purges) > 0 {
		return nil
	}
	var found []Violation
	for _, op := range r.ops {
		if op.Outcome != Refused || !op.Unmet {
			continue
		}
		for _, reading := range r.readings {
			if reading.Final && r.heldThroughout(reading, op) {
				found = append(found, r.violation(WrongRefusal, "%s", op))
			}
		}
	}
	return found
}

// heldThroughout reports whether the condition of an operation certainly held
// from its start to its end.
func (r *record) heldThroughout(reading *Reading, op *Operation) bool {
	none := Version{Deleted: true} // version 0: there is no record yet
	versions := append([]Version{none}, reading.Versions...)
	for i, v := range versions {
		if v.Number != 0 && !r.wasThereBy(v, op.Start) {
			return false
		}
		replaced := i+1 < len(versions) && r.mayBeginBefore(versions[i+1], op.End)
		if !replaced {
			return op.If.Absent && v.Deleted || op.If.Version != 0 && op.If.Version == v.Number && !v.Deleted
		}
	}
	return false
}

// wasThereBy reports whether a version was certainly written before a time.
func (r *record) wasThereBy(v Version, at time.Duration) bool {
	for _, op := range r.ops {
		if op.Outcome == Acknowledged && op.Version >= v.Number && op.End < at {
			return true
		}
	}
	return false
}

// mayBeginBefore reports whether the write of a version may have begun before a time.
func (r *record) mayBeginBefore(v Version, at time.Duration) bool {
	if !v.Deleted {
		writer := r.writers[v.Token]
		return writer == nil || writer.Start < at
	}
	for _, op := range r.ops {
		mayBe := op.Outcome == Unknown || op.Outcome == Acknowledged && op.Version == v.Number
		if op.Kind == Delete && mayBe && op.Start < at {
			return true
		}
	}
	return false
}
