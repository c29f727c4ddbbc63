package history

import "time"

// winners finds acknowledged conditional writes whose condition did not hold before, and conditions on
// the same version that several writes met.
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
				found = append(found, r.violation(WrongWinner, "%s, want version %d", op, op.If.Version+1))
			}
			this := prize{op.UID, op.If.Version}
			if other := won[this]; other != nil {
				found = append(found, r.violation(WrongWinner, "both were acknowledged for the same version: (%s) and (%s)", other, op))
			}
			won[this] = op
		}
		for _, reading := range r.readings {
			before, ok := reading.at(op.Version - 1)
			// A Put on a version may also replace the version that deleted the record.
			fits := before.Deleted == op.If.Absent || op.Kind == Put && op.If.Version != 0
			if ok && r.mustShow(reading, op) && !fits {
				found = append(found, r.violation(WrongWinner, "(%s) was acknowledged, but its condition did not hold for the version before: %s", op, describe(before, ok)))
			}
		}
	}
	return found
}

// refusals finds writes that were refused for their condition although the condition held during the
// whole write. It skips records that were purged, because their version numbers repeat.
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

// heldThroughout reports whether the condition of an operation certainly held from the start to the
// end of the operation, by the versions in a final reading.
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

// wasThereBy reports whether a version was certainly written before a time: an acknowledged operation
// that ended before made or saw this version or a later one.
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
