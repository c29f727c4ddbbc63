package history

import "time"

// wholeness finds readings whose versions are not 1, 2, 3 and so on without a gap, are not each later
// than the one before, are damaged, or delete a record that is not live.
func wholeness(r *record) []Violation {
	var found []Violation
	for _, reading := range r.readings {
		var number int64
		var updated time.Time
		deleted := true
		for _, v := range reading.Versions {
			switch {
			case v.Number <= number:
				found = append(found, r.violation(Doubled, "version %d follows version %d, want a higher one", v.Number, number))
			case v.Number > number+1 && !r.torn(reading):
				found = append(found, r.violation(Missing, "version %d follows version %d, so versions between them are missing", v.Number, number))
			case v.Deleted && deleted && v.Number == number+1:
				found = append(found, r.violation(Unexplained, "version %d deletes a record that does not exist", v.Number))
			}
			if !v.Updated.After(updated) {
				found = append(found, r.violation(Reordered, "version %d is not later than version %d", v.Number, number))
			}
			if v.Damage != "" {
				found = append(found, r.violation(HalfWritten, "version %d: %s", v.Number, v.Damage))
			}
			number, updated, deleted = v.Number, v.Updated, v.Deleted
		}
	}
	return found
}

// content finds versions whose content was not written by an operation on this record that was not
// refused, and content that several versions have.
func content(r *record) []Violation {
	var found []Violation
	for _, reading := range r.readings {
		numbers := map[string]int64{}
		for _, v := range reading.Versions {
			if v.Deleted {
				continue
			}
			if first, again := numbers[v.Token]; again {
				found = append(found, r.violation(Doubled, "the content of one write, %s, is in the versions %d and %d", v.Token, first, v.Number))
			}
			numbers[v.Token] = v.Number
			found = append(found, r.writtenBySomebody(v.Token, v.Number)...)
		}
	}
	return found
}

// writtenBySomebody returns a violation unless a Put on this record that was not refused wrote the
// token.
func (r *record) writtenBySomebody(token string, number int64) []Violation {
	writer := r.writers[token]
	switch {
	case writer == nil:
		return []Violation{r.violation(Foreign, "version %d has the content %q, which no operation wrote", number, token)}
	case writer.Outcome == Refused:
		return []Violation{r.violation(Landed, "version %d is the write of (%s), which was refused", number, writer)}
	case writer.Record != "" && writer.Record != r.name:
		return []Violation{r.violation(Foreign, "version %d is the write of (%s), which is of another record", number, writer)}
	}
	return nil
}
