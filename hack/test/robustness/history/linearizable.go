package history

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// NotLinearizable is the kind of the violations of CheckLinearizable.
const NotLinearizable = "not linearizable"

// linearizablePatience is how long the check of one record may take. A good history takes milliseconds.
const linearizablePatience = 10 * time.Second

// CheckLinearizable returns a violation for each record whose operations cannot have happened one
// after the other, each between its start and its end. A record whose check takes over 10 s is a
// violation too. Final readings count as reads of the newest version, and show which operations
// with an unknown outcome have happened. Records that were purged are not checked, because their
// version numbers repeat. CheckLinearizable is for operations in which Check finds no violation. It
// also finds contradictions that only follow from several answers together.
func CheckLinearizable(ops []Operation, readings []Reading) []Violation {
	records, _ := group(ops, readings)
	var found []Violation
	for _, name := range slices.Sorted(maps.Keys(records)) {
		r := records[name]
		if len(r.purges) > 0 {
			continue
		}
		switch porcupine.CheckOperationsTimeout(recordModel, r.timed(), linearizablePatience) {
		case porcupine.Illegal:
			found = append(found, r.violation(NotLinearizable, "no order of its %d operations explains their answers", len(r.ops)))
		case porcupine.Unknown:
			found = append(found, r.violation(NotLinearizable, "the check of its %d operations was not finished in %s", len(r.ops), linearizablePatience))
		}
	}
	return found
}

// timed returns the operations that had an effect on the record or saw it, with their times.
func (r *record) timed() []porcupine.Operation {
	var timed []porcupine.Operation
	add := func(op Operation, end time.Duration) {
		timed = append(timed, porcupine.Operation{Input: op, Call: int64(op.Start), Return: int64(end)})
	}
	landed, deletions := map[string]int64{}, []int64{}
	for _, reading := range r.readings {
		if !reading.Final {
			continue
		}
		for _, v := range reading.Versions {
			if v.Deleted && !slices.Contains(deletions, v.Number) {
				deletions = append(deletions, v.Number)
			}
			landed[v.Token] = v.Number
		}
		newest, _ := reading.Newest()
		add(Operation{
			Kind: Read, Record: r.name, Token: newest.Token, Version: newest.Number, Deleted: newest.Deleted,
			Start: reading.Start, End: reading.End, Outcome: Acknowledged,
		}, reading.End)
	}
	for _, op := range r.ops {
		switch {
		case op.Kind == Read && op.Outcome != Acknowledged, op.Outcome == Refused && !op.Unmet:
			// Such an operation had no effect, and its answer says nothing about the record.
		case op.Outcome != Unknown:
			add(*op, op.End)
		case op.Kind == Put && landed[op.Token] != 0:
			made := *op
			made.Outcome, made.Version, made.Made = Acknowledged, landed[op.Token], true
			add(made, math.MaxInt64) // the server may have done it after the client gave up
		case op.Kind == Delete:
			// Acknowledged operations made most of the deletions. For each other deletion, the model
			// tries every unknown Delete.
			for _, version := range deletions {
				if !r.acknowledged(version) && (op.If.Version == 0 || op.If.Version == version-1) {
					add(*op, math.MaxInt64)
					break
				}
			}
		}
	}
	return timed
}

// acknowledged reports whether an acknowledged operation made a version.
func (r *record) acknowledged(version int64) bool {
	return slices.ContainsFunc(r.ops, func(op *Operation) bool {
		return op.Outcome == Acknowledged && op.Made && op.Version == version
	})
}

// newestVersion is the state of a record. The number 0 means that the record does not exist.
type newestVersion struct {
	number  int64
	token   string
	deleted bool
}

func (s newestVersion) isLive() bool { return s.number > 0 && !s.deleted }

// recordModel is the model of one record. The input is an Operation, which includes its answer.
var recordModel = porcupine.Model{
	Init: func() any { return newestVersion{} },
	Step: func(state, input, _ any) (bool, any) { return step(state.(newestVersion), input.(Operation)) },
}

// step reports whether the answer of an operation is right in a state, and returns the next state.
func step(s newestVersion, op Operation) (bool, newestVersion) {
	switch {
	case op.Kind == Read:
		if op.Deleted {
			return s.deleted && (op.Version == 0 || op.Version == s.number), s
		}
		return s == newestVersion{number: op.Version, token: op.Token} || op.Version == 0 && !s.isLive(), s
	case op.Unmet:
		return !op.If.certainlyHolds(s), s
	case !op.If.mayHold(s):
		return op.Outcome == Unknown, s
	case op.Kind == Delete && !s.isLive():
		return op.Outcome == Unknown || op.Version == 0 || op.Version == s.number, s
	default:
		next := newestVersion{number: s.number + 1, token: op.Token, deleted: op.Kind == Delete}
		return op.Outcome == Unknown || op.Version == next.number, next
	}
}

// certainlyHolds reports whether an operation with the condition must not be refused.
func (c Condition) certainlyHolds(s newestVersion) bool {
	return c.Absent && !s.isLive() || c.Version != 0 && s.isLive() && s.number == c.Version
}

// mayHold reports whether an operation with the condition may be done. The condition may name the
// version that deleted the record: a Put with it restores the record.
func (c Condition) mayHold(s newestVersion) bool {
	return (!c.Absent || !s.isLive()) && (c.Version == 0 || s.number == c.Version)
}
