package history

// presence finds readings that began after an acknowledged write and do not show it at the version in
// its answer, unless a purge may explain that.
func presence(r *record) []Violation {
	var found []Violation
	for _, op := range r.ops {
		if op.Outcome != Acknowledged || !op.Made {
			continue
		}
		for _, reading := range r.readings {
			if !r.mustShow(reading, op) {
				continue
			}
			v, ok := reading.at(op.Version)
			if !ok || v.UID != op.UID || v.Token != op.Token || v.Deleted != (op.Kind == Delete) {
				found = append(found, r.violation(Lost, "the version of (%s) is missing: %s", op, describe(v, ok)))
			}
		}
	}
	return found
}

// mustShow reports whether a reading must show the version in the answer of an acknowledged operation:
// the operation ended before the reading began, and either no purge may have happened since, or the
// reading has the uid of the operation, so that the version was not purged.
func (r *record) mustShow(reading *Reading, op *Operation) bool {
	if op.End >= reading.Start || r.torn(reading) {
		return false
	}
	return !r.mayBePurged(op.Start, reading.End) || op.UID != "" && reading.holds(op.UID)
}

func describe(v Version, ok bool) string {
	switch {
	case !ok:
		return "there is no such version"
	case v.Deleted:
		return "that version is a deletion"
	default:
		return "that version is " + v.Token
	}
}

// reads finds versions that an operation saw and that later readings do not show unchanged. A Delete
// that made no version saw the deletion that it found.
func reads(r *record) []Violation {
	var found []Violation
	for _, op := range r.ops {
		if op.Kind != Read && op.Kind != Delete || op.Made || op.Outcome != Acknowledged || op.Version == 0 {
			continue
		}
		deleted := op.Deleted || op.Kind == Delete
		if !deleted {
			found = append(found, r.writtenBySomebody(op.Token, op.Version)...)
		}
		for _, reading := range r.readings {
			if !r.mustShow(reading, op) {
				continue
			}
			v, ok := reading.at(op.Version)
			if !ok || v.UID != op.UID || v.Token != op.Token || v.Deleted != deleted {
				found = append(found, r.violation(Lost, "the version of (%s) is missing: %s", op, describe(v, ok)))
			}
		}
	}
	return found
}

// adoption finds content that was written before a purge began and is shown after the purge ended.
func adoption(r *record) []Violation {
	var found []Violation
	for _, purge := range r.purges {
		if purge.Outcome != Acknowledged {
			continue
		}
		gone := func(token string) bool {
			writer := r.writers[token]
			return writer != nil && writer.Outcome == Acknowledged && writer.End < purge.Start
		}
		for _, reading := range r.readings {
			for _, v := range reading.Versions {
				if reading.Start > purge.End && !v.Deleted && gone(v.Token) {
					found = append(found, r.violation(Adopted, "version %d is %s, which the %s removed", v.Number, v.Token, purge))
				}
			}
		}
		for _, op := range r.ops {
			if op.Kind == Read && op.Outcome == Acknowledged && op.Start > purge.End && op.Token != "" && gone(op.Token) {
				found = append(found, r.violation(Adopted, "%s saw %s, which the %s removed", op, op.Token, purge))
			}
		}
	}
	return found
}

// deletions finds deletions that no operation made: more than the acknowledged Deletes and those with
// an unknown outcome explain.
func deletions(r *record) []Violation {
	var unanswered int
	told := map[Version]bool{}
	for _, op := range r.ops {
		switch {
		case op.Kind != Delete:
		case op.Outcome == Unknown:
			unanswered++
		case op.Outcome == Acknowledged:
			told[Version{Number: op.Version, UID: op.UID}] = true
		}
	}
	var found []Violation
	for _, reading := range r.readings {
		left := unanswered
		for _, v := range reading.Versions {
			if !v.Deleted || told[Version{Number: v.Number, UID: v.UID}] {
				continue
			}
			if left--; left < 0 {
				found = append(found, r.violation(Unexplained, "version %d is a deletion, but no Delete explains it", v.Number))
			}
		}
	}
	return found
}

// agreement finds final readings of a record that differ, and records without a final reading.
func agreement(r *record) []Violation {
	var found []Violation
	var first *Reading
	for _, reading := range r.readings {
		switch {
		case !reading.Final:
		case first == nil:
			first = reading
		default:
			found = append(found, r.compare(first, reading)...)
		}
	}
	if first == nil {
		found = append(found, r.violation(Unread, "there is no final reading of its history"))
	}
	return found
}

func (r *record) compare(a, b *Reading) []Violation {
	if len(a.Versions) != len(b.Versions) {
		return []Violation{r.violation(Disagreement, "%s reads %d versions, and %s reads %d", a.By, len(a.Versions), b.By, len(b.Versions))}
	}
	for i, v := range a.Versions {
		w := b.Versions[i]
		if v.Number != w.Number || v.UID != w.UID || v.Token != w.Token || v.Deleted != w.Deleted || !v.Updated.Equal(w.Updated) {
			return []Violation{r.violation(Disagreement, "%s reads %+v, and %s reads %+v", a.By, v, b.By, w)}
		}
	}
	return nil
}
