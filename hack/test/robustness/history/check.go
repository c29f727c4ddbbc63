package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Violation is something that must not be.
type Violation struct {
	Kind   string
	Record string
	Text   string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Record, v.Kind, v.Text) }

// The kinds of violations.
const (
	// Missing: a version that later ones count on is not there.
	Missing = "missing version"
	// Lost: an acknowledged write, or a version that was read, is not there.
	Lost = "lost write"
	// Doubled: one write, or one version number, is there twice.
	Doubled = "doubled"
	// HalfWritten: the content of a version is not what any write wrote.
	HalfWritten = "half-written"
	// Landed: a write that was refused is there.
	Landed = "refused write landed"
	// Foreign: content that nobody wrote to this record.
	Foreign = "foreign content"
	// Adopted: content of a namesake that was purged.
	Adopted = "adopted from a purged namesake"
	// Reordered: versions contradict the order in which things happened.
	Reordered = "reordered"
	// WrongWinner: a conditional write whose condition did not hold.
	WrongWinner = "wrong winner"
	// WrongRefusal: a conditional write refused although its condition held.
	WrongRefusal = "wrong refusal"
	// Unexplained: a deletion that nobody asked for.
	Unexplained = "unexplained deletion"
	// Disagreement: two readers, after all is quiet, see different things.
	Disagreement = "disagreement"
	// DoubleBooked: two records hold one line.
	DoubleBooked = "double-booked"
	// Unread: a record that was written and whose history nobody read in the end.
	Unread = "unread"
	// WrongSearch: a search does not show what there is.
	WrongSearch = "wrong search"
)

// record is all that is known of one record.
type record struct {
	name     string
	ops      []*Operation
	purges   []*Operation
	readings []*Reading
	// writers finds the Put that wrote a token, of whichever record.
	writers map[string]*Operation
}

func (r *record) violation(kind, format string, args ...any) Violation {
	return Violation{Kind: kind, Record: r.name, Text: fmt.Sprintf(format, args...)}
}

// check looks for violations of one kind or a few.
type check func(*record) []Violation

var checks = []check{wholeness, content, presence, adoption, order, winners, refusals, deletions, reads, agreement}

// Check returns all that contradicts the operations in the readings. Each record
// that was written must have a final reading.
func Check(ops []Operation, readings []Reading) []Violation {
	records, violations := group(ops, readings)
	for _, name := range slices.Sorted(maps.Keys(records)) {
		for _, find := range checks {
			violations = append(violations, find(records[name])...)
		}
	}
	for _, find := range []func(map[string]*record) []Violation{exclusion, uniqueness} {
		violations = append(violations, find(records)...)
	}
	return unique(violations)
}

// Records names all records that operations or readings are about: those that Check
// wants a final reading of. A record that was only ever read may be among them.
func Records(ops []Operation, readings []Reading) []string {
	names := map[string]bool{}
	for _, op := range ops {
		names[op.Record] = true
	}
	for _, reading := range readings {
		names[reading.Record] = true
	}
	delete(names, "") // a create that nobody knows the record of
	return slices.Sorted(maps.Keys(names))
}

// unique drops repetitions: two readers see the same trouble.
func unique(violations []Violation) []Violation {
	seen := map[Violation]bool{}
	return slices.DeleteFunc(violations, func(v Violation) bool {
		before := seen[v]
		seen[v] = true
		return before
	})
}

// group sorts operations and readings by record. A Put that names no record, a
// create whose answer was lost, belongs to the record that shows its token.
func group(ops []Operation, readings []Reading) (map[string]*record, []Violation) {
	writers := map[string]*Operation{}
	records := map[string]*record{}
	at := func(name string) *record {
		if records[name] == nil {
			records[name] = &record{name: name, writers: writers}
		}
		return records[name]
	}
	shown := places(readings)
	var violations []Violation
	for i := range ops {
		op := ops[i]
		if op.Kind == Put {
			writers[op.Token] = &op
		}
		if op.Record == "" {
			homes := shown[op.Token]
			if len(homes) > 1 {
				violations = append(violations, Violation{Doubled, homes[0], fmt.Sprintf("the one write of %s is in the records %v", op.Token, homes)})
			}
			if len(homes) == 0 {
				continue
			}
			op.Record = homes[0]
		}
		r := at(op.Record)
		r.ops = append(r.ops, &op)
		if op.Kind == Purge {
			r.purges = append(r.purges, &op)
		}
	}
	for i := range readings {
		r := at(readings[i].Record)
		r.readings = append(r.readings, &readings[i])
	}
	for _, r := range records {
		slices.SortStableFunc(r.ops, func(a, b *Operation) int { return cmp.Compare(a.Start, b.Start) })
	}
	return records, violations
}

// places lists the records in which each token is shown.
func places(readings []Reading) map[string][]string {
	shown := map[string][]string{}
	for _, reading := range readings {
		for _, v := range reading.Versions {
			if v.Token != "" && !slices.Contains(shown[v.Token], reading.Record) {
				shown[v.Token] = append(shown[v.Token], reading.Record)
			}
		}
	}
	return shown
}

// mayBePurged reports whether a purge may have hit between two times.
func (r *record) mayBePurged(from, until time.Duration) bool {
	return slices.ContainsFunc(r.purges, func(p *Operation) bool { return p.possiblyDuring(from, until) })
}

// torn reports whether a purge may have hit while a reading was made. A history
// is read in two steps, so that it may lack what was purged between them.
func (r *record) torn(reading *Reading) bool {
	return !reading.Final && r.mayBePurged(reading.Start, reading.End)
}
