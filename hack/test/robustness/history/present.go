package history

// presence: an acknowledged write is there, at the version that was told, in every
// reading that began later, unless a purge may have come in between.
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
				found = append(found, r.violation(Lost, "%s, is not there: %s", op, describe(v, ok)))
			}
		}
	}
	return found
}

// mustShow reports whether a reading has to show what an acknowledged operation
// told. It does after a purge too, if the life that the purge ended is not over.
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

// reads: a version that somebody saw stays what it was. A Delete sees the deletion
// that it made or found.
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
				found = append(found, r.violation(Lost, "%s, is not there: %s", op, describe(v, ok)))
			}
		}
	}
	return found
}

// adoption: what was written before a purge began is not shown after it ended.
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

// deletions: each deletion was asked for by somebody.
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
				found = append(found, r.violation(Unexplained, "version %d is a deletion that nobody asked for", v.Number))
			}
		}
	}
	return found
}

// agreement: when all is quiet, everybody reads the same, and somebody reads.
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
		found = append(found, r.violation(Unread, "nobody read its history in the end"))
	}
	return found
}

func (r *record) compare(a, b *Reading) []Violation {
	if len(a.Versions) != len(b.Versions) {
		return []Violation{r.violation(Disagreement, "%s sees %d versions, %s sees %d", a.By, len(a.Versions), b.By, len(b.Versions))}
	}
	for i, v := range a.Versions {
		w := b.Versions[i]
		if v.Number != w.Number || v.UID != w.UID || v.Token != w.Token || v.Deleted != w.Deleted || !v.Updated.Equal(w.Updated) {
			return []Violation{r.violation(Disagreement, "%s sees %+v, %s sees %+v", a.By, v, b.By, w)}
		}
	}
	return nil
}
