package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Violation is a contradiction between operations and readings of a record.
type Violation struct {
	Kind   string
	Record string
	Text   string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Record, v.Kind, v.Text) }

// The kinds of violations.
const (
	// Missing: a reading has a version but not the version before it.
	Missing = "missing version"
	// Lost: an acknowledged write, or a version that an operation read, is not there.
	Lost = "lost write"
	// Doubled: one write, or one version number, is there twice.
	Doubled = "doubled"
	// HalfWritten: the content of a version is damaged.
	HalfWritten = "half-written"
	// Landed: a write that was refused is there.
	Landed = "refused write landed"
	// Foreign: a version has content that no operation wrote to this record.
	Foreign = "foreign content"
	// Adopted: a record shows content that was written before it was purged, under the same name.
	Adopted = "adopted from a purged namesake"
	// Reordered: the numbers or times of versions contradict the order of the operations.
	Reordered = "reordered"
	// WrongWinner: a conditional write was done although its condition did not hold.
	WrongWinner = "wrong winner"
	// WrongRefusal: a conditional write was refused although its condition held.
	WrongRefusal = "wrong refusal"
	// Unexplained: a version is a deletion that no operation explains.
	Unexplained = "unexplained deletion"
	// Disagreement: two final readings of a record differ.
	Disagreement = "disagreement"
	// DoubleBooked: two records hold the same line.
	DoubleBooked = "double-booked"
	// Unread: a record was written or read and has no final reading.
	Unread = "unread"
	// WrongSearch: a search result differs from the final readings.
	WrongSearch = "wrong search"
)

// record has all operations on one record and all readings of it.
type record struct {
	name     string
	ops      []*Operation
	purges   []*Operation
	readings []*Reading
	// writers has the Put that wrote each token, for the tokens of all records.
	writers map[string]*Operation
}

func (r *record) violation(kind, format string, args ...any) Violation {
	return Violation{Kind: kind, Record: r.name, Text: fmt.Sprintf(format, args...)}
}

// check returns the violations of one kind, or of a few kinds, in a record.
type check func(*record) []Violation

var checks = []check{wholeness, content, presence, adoption, order, winners, refusals, deletions, reads, agreement}

// Check returns the contradictions between operations and readings. Each record that Records
// returns must have a final reading.
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

// Records returns the names of all records of operations and readings, sorted. Check needs a final
// reading of each of them. Records that were only read are among them.
func Records(ops []Operation, readings []Reading) []string {
	names := map[string]bool{}
	for _, op := range ops {
		names[op.Record] = true
	}
	for _, reading := range readings {
		names[reading.Record] = true
	}
	delete(names, "") // the record of a create whose response was lost is not known
	return slices.Sorted(maps.Keys(names))
}

// unique removes repeated violations, which occur when two readings have the same error.
func unique(violations []Violation) []Violation {
	seen := map[Violation]bool{}
	return slices.DeleteFunc(violations, func(v Violation) bool {
		before := seen[v]
		seen[v] = true
		return before
	})
}

// group groups operations and readings by record. A Put without a record name, a create whose response
// was lost, belongs to the record that shows its token. It is left out if no record shows the token,
// and is a violation if several do.
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
				violations = append(violations, Violation{Doubled, homes[0], fmt.Sprintf("the content of one write, %s, is in the records %v", op.Token, homes)})
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

// places returns the names of the records in which readings show each token.
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

// mayBePurged reports whether a purge may have happened between two times.
func (r *record) mayBePurged(from, until time.Duration) bool {
	return slices.ContainsFunc(r.purges, func(p *Operation) bool { return p.possiblyDuring(from, until) })
}

// torn reports whether a purge may have happened during a reading. A server reads a history in two
// steps, so the reading may lack versions that were purged between them. Final readings are never
// torn.
func (r *record) torn(reading *Reading) bool {
	return !reading.Final && r.mayBePurged(reading.Start, reading.End)
}
