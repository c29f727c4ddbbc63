package history_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

const rex = "rex"

// put is an acknowledged write of rex between two times.
func put(start, end time.Duration, version int64, token string) history.Operation {
	return history.Operation{
		Kind: history.Put, Record: rex, Token: token, Start: start, End: end,
		Outcome: history.Acknowledged, Version: version, Made: true,
	}
}

func remove(start, end time.Duration, version int64) history.Operation {
	return history.Operation{
		Kind: history.Delete, Record: rex, Start: start, End: end,
		Outcome: history.Acknowledged, Version: version, Made: true,
	}
}

func read(start, end time.Duration, version int64, token string) history.Operation {
	return history.Operation{
		Kind: history.Read, Record: rex, Token: token, Start: start, End: end,
		Outcome: history.Acknowledged, Version: version, Deleted: version > 0 && token == "",
	}
}

func purge(start, end time.Duration) history.Operation {
	return history.Operation{Kind: history.Purge, Record: rex, Start: start, End: end, Outcome: history.Acknowledged}
}

func unknown(op history.Operation) history.Operation {
	op.Outcome, op.Version, op.UID, op.Made, op.End = history.Unknown, 0, "", false, 0
	return op
}

func unmet(op history.Operation) history.Operation {
	op.Outcome, op.Version, op.UID, op.Made, op.Unmet = history.Refused, 0, "", false, true
	return op
}

func ifAt(version int64, op history.Operation) history.Operation {
	op.If.Version = version
	return op
}

func ifAbsent(op history.Operation) history.Operation {
	op.If.Absent = true
	return op
}

func life(uid string, op history.Operation) history.Operation {
	op.UID = uid
	return op
}

// final is a reading of rex at the end; an empty token is a deletion.
func final(tokens ...string) history.Reading {
	reading := history.Reading{Record: rex, By: "one", Start: 1000, End: 1001, Final: true}
	for i, token := range tokens {
		number := int64(i + 1)
		reading.Versions = append(reading.Versions, history.Version{
			Number: number, Token: token, Deleted: token == "", Updated: time.UnixMilli(number),
		})
	}
	return reading
}

func change(reading history.Reading, change func(*history.Reading)) history.Reading {
	change(&reading)
	return reading
}

func underUID(uid string, reading history.Reading) history.Reading {
	for i := range reading.Versions {
		reading.Versions[i].UID = uid
	}
	return reading
}

// between makes a reading one of those while operations went on.
func between(start, end time.Duration, reading history.Reading) history.Reading {
	reading.Start, reading.End, reading.Final = start, end, false
	return reading
}

type scenario struct {
	ops      []history.Operation
	readings []history.Reading
	// want are the kinds of violations, each once, in alphabetical order.
	want []string
}

func run(t *testing.T, scenarios map[string]scenario) {
	t.Helper()
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			violations := history.Check(s.ops, s.readings)
			var got []string
			for _, v := range violations {
				got = append(got, v.Kind)
			}
			slices.Sort(got)
			if diff := cmp.Diff(s.want, slices.Compact(got)); diff != "" {
				t.Errorf("violations (-want +got):\n%s%v", diff, violations)
			}
		})
	}
}

func TestGoodHistories(t *testing.T) {
	a, b := put(0, 10, 1, "a"), put(20, 30, 2, "b")
	run(t, map[string]scenario{
		"nothing happened":          {},
		"writes one after another":  {ops: []history.Operation{a, b}, readings: []history.Reading{final("a", "b")}},
		"writes at the same time":   {ops: []history.Operation{put(0, 10, 2, "a"), put(5, 12, 1, "b")}, readings: []history.Reading{final("b", "a")}},
		"an unknown write landed":   {ops: []history.Operation{a, unknown(b)}, readings: []history.Reading{final("a", "b")}},
		"an unknown write is lost":  {ops: []history.Operation{a, unknown(b)}, readings: []history.Reading{final("a")}},
		"an unknown write is late":  {ops: []history.Operation{unknown(a), put(20, 30, 1, "b")}, readings: []history.Reading{final("b", "a")}},
		"a create without a name":   {ops: []history.Operation{unknown(history.Operation{Kind: history.Put, Token: "a"})}, readings: []history.Reading{final("a")}},
		"such a create that failed": {ops: []history.Operation{unknown(history.Operation{Kind: history.Put, Token: "z"}), a}, readings: []history.Reading{final("a")}},
		"brought back":              {ops: []history.Operation{a, remove(20, 30, 2), ifAt(2, put(40, 50, 3, "b"))}, readings: []history.Reading{final("a", "", "b")}},
		"a refused write":           {ops: []history.Operation{a, b, unmet(ifAt(1, put(40, 50, 0, "c")))}, readings: []history.Reading{final("a", "b")}},
		"a refused create":          {ops: []history.Operation{a, unmet(ifAbsent(put(40, 50, 0, "c")))}, readings: []history.Reading{final("a")}},
		"delete and create again": {
			ops:      []history.Operation{a, remove(20, 30, 2), ifAbsent(put(40, 50, 3, "b"))},
			readings: []history.Reading{final("a", "", "b")},
		},
		"an unknown delete landed": {ops: []history.Operation{a, unknown(remove(20, 0, 0))}, readings: []history.Reading{final("a", "")}},
		"a delete of what is gone": {
			ops: []history.Operation{a, remove(20, 30, 2), {
				Kind: history.Delete, Record: rex, Start: 40, End: 50, Outcome: history.Acknowledged, Version: 2,
			}},
			readings: []history.Reading{final("a", "")},
		},
		"reads": {
			ops:      []history.Operation{read(-9, -8, 0, ""), a, read(5, 25, 1, "a"), b, read(5, 25, 2, "b"), remove(30, 40, 3), read(50, 60, 3, "")},
			readings: []history.Reading{final("a", "b", "")},
		},
		"one winner": {
			ops:      []history.Operation{a, ifAt(1, b), unmet(ifAt(1, put(20, 30, 0, "c"))), unknown(ifAt(1, put(20, 0, 0, "d")))},
			readings: []history.Reading{final("a", "b")},
		},
		"refused because of a write whose answer was lost": {
			ops:      []history.Operation{a, unknown(put(15, 0, 0, "b")), unmet(ifAt(1, put(20, 30, 0, "c")))},
			readings: []history.Reading{final("a", "b")},
		},
	})
}

func TestBadHistories(t *testing.T) {
	a, b, c := put(0, 10, 1, "a"), put(20, 30, 2, "b"), put(40, 50, 3, "c")
	run(t, map[string]scenario{
		"a write is lost":                   {ops: []history.Operation{a, b}, readings: []history.Reading{final("a")}, want: []string{history.Lost}},
		"the superseded version is missing": {ops: []history.Operation{a, b}, readings: []history.Reading{change(final("a", "b"), func(r *history.Reading) { r.Versions = r.Versions[1:] })}, want: []string{history.Lost, history.Missing}},
		"a version nobody knows is missing": {ops: []history.Operation{a, unknown(b), c}, readings: []history.Reading{change(final("a", "b", "c"), func(r *history.Reading) { r.Versions = slices.Delete(r.Versions, 1, 2) })}, want: []string{history.Missing}},
		"a write was overwritten": {
			ops: []history.Operation{a, put(20, 30, 2, "b"), put(20, 31, 2, "c")}, readings: []history.Reading{final("a", "c")},
			want: []string{history.Lost},
		},
		"a write is there twice":          {ops: []history.Operation{a, b}, readings: []history.Reading{final("a", "b", "a")}, want: []string{history.Doubled}},
		"an unknown write is there twice": {ops: []history.Operation{a, unknown(b)}, readings: []history.Reading{final("a", "b", "b")}, want: []string{history.Doubled}},
		"a version number is there twice": {ops: []history.Operation{a, b}, readings: []history.Reading{change(final("a", "b", "b"), func(r *history.Reading) { r.Versions[2].Number = 2 })}, want: []string{history.Doubled}},
		"a create without a name is in two records": {
			ops:      []history.Operation{unknown(history.Operation{Kind: history.Put, Token: "a"})},
			readings: []history.Reading{final("a"), change(final("a"), func(r *history.Reading) { r.Record = "bella" })},
			want:     []string{history.Doubled, history.Foreign},
		},
		"half a write":              {ops: []history.Operation{a}, readings: []history.Reading{change(final("a"), func(r *history.Reading) { r.Versions[0].Damage = "cut off" })}, want: []string{history.HalfWritten}},
		"a refused write is there":  {ops: []history.Operation{a, unmet(ifAt(9, put(20, 30, 0, "b")))}, readings: []history.Reading{final("a", "b")}, want: []string{history.Landed}},
		"content of nobody":         {ops: []history.Operation{a}, readings: []history.Reading{final("a", "z")}, want: []string{history.Foreign}},
		"content of another record": {ops: []history.Operation{{Kind: history.Put, Record: "bella", Token: "z", Outcome: history.Unknown}, a}, readings: []history.Reading{final("a", "z"), {Record: "bella", Final: true}}, want: []string{history.Foreign}},
		"a deletion of nobody":      {ops: []history.Operation{a}, readings: []history.Reading{final("a", "")}, want: []string{history.Unexplained}},
		"a deletion done twice":     {ops: []history.Operation{a, remove(20, 30, 2)}, readings: []history.Reading{final("a", "", "")}, want: []string{history.Unexplained}},
		"a deletion is lost":        {ops: []history.Operation{a, remove(20, 30, 2)}, readings: []history.Reading{final("a")}, want: []string{history.Lost}},
		"later but before":          {ops: []history.Operation{put(0, 10, 2, "a"), put(20, 30, 1, "b")}, readings: []history.Reading{final("b", "a")}, want: []string{history.Reordered}},
		"unknown, later but before": {ops: []history.Operation{put(0, 10, 2, "a"), unknown(put(20, 30, 1, "b"))}, readings: []history.Reading{final("b", "a")}, want: []string{history.Reordered}},
		"times go backwards":        {ops: []history.Operation{a, b}, readings: []history.Reading{change(final("a", "b"), func(r *history.Reading) { r.Versions[1].Updated = r.Versions[0].Updated })}, want: []string{history.Reordered}},
		"a stale read":              {ops: []history.Operation{a, b, read(40, 50, 1, "a")}, readings: []history.Reading{final("a", "b")}, want: []string{history.Reordered}},
		"a record not seen":         {ops: []history.Operation{a, read(40, 50, 0, "")}, readings: []history.Reading{final("a")}, want: []string{history.Reordered}},
		"a read of what came later": {ops: []history.Operation{read(-9, -5, 1, "a"), a}, readings: []history.Reading{final("a")}, want: []string{history.Reordered}},
		"a read of what was undone": {ops: []history.Operation{a, unknown(b), read(40, 50, 2, "b")}, readings: []history.Reading{final("a")}, want: []string{history.Lost}},
		"a deletion found and undone": {ops: []history.Operation{a, b, {
			Kind: history.Delete, Record: rex, Start: 40, End: 50, Outcome: history.Acknowledged, Version: 2,
		}}, readings: []history.Reading{final("a", "b")}, want: []string{history.Lost}},
		"two winners":               {ops: []history.Operation{a, ifAt(1, b), ifAt(1, put(20, 30, 3, "c"))}, readings: []history.Reading{final("a", "b", "c")}, want: []string{history.WrongWinner}},
		"a winner over a deletion":  {ops: []history.Operation{a, remove(20, 30, 2), ifAt(1, put(40, 50, 3, "b"))}, readings: []history.Reading{final("a", "", "b")}, want: []string{history.WrongWinner}},
		"a winner over a record":    {ops: []history.Operation{a, ifAbsent(b)}, readings: []history.Reading{final("a", "b")}, want: []string{history.WrongWinner}},
		"no winner":                 {ops: []history.Operation{a, unmet(ifAt(1, put(20, 30, 0, "b")))}, readings: []history.Reading{final("a")}, want: []string{history.WrongRefusal}},
		"no winner for a while":     {ops: []history.Operation{a, unmet(ifAt(1, put(20, 30, 0, "b"))), put(40, 50, 2, "c")}, readings: []history.Reading{final("a", "c")}, want: []string{history.WrongRefusal}},
		"no first before the first": {ops: []history.Operation{unmet(ifAbsent(put(-9, -5, 0, "b"))), a}, readings: []history.Reading{final("a")}, want: []string{history.WrongRefusal}},
		"nobody looked":             {ops: []history.Operation{a}, want: []string{history.Unread}},
		"two readers disagree":      {ops: []history.Operation{a, unknown(b)}, readings: []history.Reading{final("a", "b"), final("a")}, want: []string{history.Disagreement}},
	})
}

func TestPurges(t *testing.T) {
	a, again := life("u", put(0, 10, 1, "a")), life("v", put(40, 50, 1, "b"))
	mark := purge(20, 30)
	run(t, map[string]scenario{
		"nothing is left":                     {ops: []history.Operation{a, mark}, readings: []history.Reading{final()}},
		"a namesake starts anew":              {ops: []history.Operation{a, mark, again}, readings: []history.Reading{underUID("v", final("b"))}},
		"an unknown purge happened":           {ops: []history.Operation{a, unknown(mark)}, readings: []history.Reading{final()}},
		"an unknown purge did not happen":     {ops: []history.Operation{a, unknown(mark)}, readings: []history.Reading{underUID("u", final("a"))}},
		"a history torn by a purge":           {ops: []history.Operation{a, life("u", put(12, 14, 2, "b")), mark}, readings: []history.Reading{final(), change(between(22, 24, underUID("u", final("a", "b"))), func(r *history.Reading) { r.Versions = r.Versions[1:] })}},
		"what was purged is still there":      {ops: []history.Operation{a, mark}, readings: []history.Reading{underUID("u", final("a"))}, want: []string{history.Adopted}},
		"a namesake adopts":                   {ops: []history.Operation{a, mark, life("v", put(40, 50, 2, "b"))}, readings: []history.Reading{underUID("v", final("a", "b"))}, want: []string{history.Adopted}},
		"somebody saw what was purged":        {ops: []history.Operation{a, mark, life("u", read(32, 34, 1, "a"))}, readings: []history.Reading{final()}, want: []string{history.Adopted, history.Lost}},
		"a reading saw what was purged":       {ops: []history.Operation{a, mark}, readings: []history.Reading{final(), between(32, 34, underUID("u", final("a")))}, want: []string{history.Adopted}},
		"a write after the purge is lost":     {ops: []history.Operation{a, mark, again}, readings: []history.Reading{final()}, want: []string{history.Lost}},
		"lost beside an unknown purge":        {ops: []history.Operation{a, unknown(mark), life("u", put(40, 50, 2, "b"))}, readings: []history.Reading{underUID("u", final("a"))}, want: []string{history.Lost}},
		"the namesake of the namesake adopts": {ops: []history.Operation{a, mark, again, purge(60, 70), life("w", put(80, 90, 1, "c"))}, readings: []history.Reading{underUID("w", final("c", "b"))}, want: []string{history.Adopted}},
	})
}

func TestClaims(t *testing.T) {
	claim := func(record string, op history.Operation) history.Operation {
		op.Record, op.Lines = record, []string{"room 1"}
		return op
	}
	giving := func(op history.Operation) history.Operation {
		op.Lines = []string{}
		return op
	}
	of := func(record string, reading history.Reading) history.Reading {
		reading.Record = record
		return reading
	}
	held, rival := claim("rex", put(0, 10, 1, "a")), claim("bella", put(40, 50, 1, "b"))
	bella := of("bella", final("b"))
	run(t, map[string]scenario{
		"one after the other":   {ops: []history.Operation{held, remove(20, 30, 2), rival}, readings: []history.Reading{final("a", ""), bella}},
		"given up by a put":     {ops: []history.Operation{held, giving(put(20, 30, 2, "c")), rival}, readings: []history.Reading{final("a", "c"), bella}},
		"perhaps given up":      {ops: []history.Operation{held, unknown(remove(20, 30, 2)), rival}, readings: []history.Reading{final("a", ""), bella}},
		"held by two":           {ops: []history.Operation{held, rival}, readings: []history.Reading{final("a"), bella}, want: []string{history.DoubleBooked}},
		"not given up by a put": {ops: []history.Operation{held, put(20, 30, 2, "c"), rival}, readings: []history.Reading{final("a", "c"), bella}, want: []string{history.DoubleBooked}},
		"held by two all along": {ops: []history.Operation{held, claim("rex", put(20, 30, 2, "c")), rival}, readings: []history.Reading{final("a", "c"), bella}, want: []string{history.DoubleBooked}},
		"held by one without answer": {
			ops:      []history.Operation{unknown(held), read(20, 30, 1, "a"), rival},
			readings: []history.Reading{final("a"), bella}, want: []string{history.DoubleBooked},
		},
		"held by one in the end":  {ops: []history.Operation{unknown(held), rival}, readings: []history.Reading{final("a"), bella}},
		"given up only afterward": {ops: []history.Operation{held, rival, remove(60, 70, 2)}, readings: []history.Reading{final("a", ""), bella}, want: []string{history.DoubleBooked}},
	})
}

func TestCriteria(t *testing.T) {
	under := func(criteria, record string, op history.Operation) history.Operation {
		op.Criteria, op.Record = criteria, record
		return op
	}
	bella := final("b")
	bella.Record = "bella"
	a := under("chip=1", rex, put(0, 10, 1, "a"))
	run(t, map[string]scenario{
		"one of each":            {ops: []history.Operation{a, under("chip=2", "bella", put(0, 10, 1, "b"))}, readings: []history.Reading{final("a"), bella}},
		"one failed":             {ops: []history.Operation{a, unknown(under("chip=1", "", put(0, 10, 1, "b")))}, readings: []history.Reading{final("a")}},
		"two of one":             {ops: []history.Operation{a, under("chip=1", "bella", put(20, 30, 1, "b"))}, readings: []history.Reading{final("a"), bella}, want: []string{history.Doubled}},
		"an unknown one as well": {ops: []history.Operation{a, unknown(under("chip=1", "", put(0, 10, 1, "b")))}, readings: []history.Reading{final("a"), bella}, want: []string{history.Doubled}},
	})
}

func TestRecords(t *testing.T) {
	create := unknown(put(0, 10, 1, "a"))
	create.Record = ""
	onlyRead := final()
	onlyRead.Record = "luna"
	ops, readings := []history.Operation{put(0, 10, 1, "b"), create, read(20, 30, 1, "b")}, []history.Reading{final("b"), onlyRead}
	if diff := cmp.Diff([]string{"luna", rex}, history.Records(ops, readings)); diff != "" {
		t.Error(diff)
	}
}

func TestCheckSearch(t *testing.T) {
	deleted := change(final("x", ""), func(r *history.Reading) { r.Record = "bella" })
	readings := []history.Reading{final("a", "b"), deleted, {Record: "max", By: "one", Final: true}}
	hit := history.Version{Number: 2, Token: "b"}
	for name, test := range map[string]struct {
		found map[string]history.Version
		want  int
	}{
		"the live one in its newest version": {map[string]history.Version{rex: hit}, 0},
		"not found":                          {nil, 1},
		"in an old version":                  {map[string]history.Version{rex: {Number: 1, Token: "a"}}, 1},
		"with a damaged content":             {map[string]history.Version{rex: {Number: 2, Token: "b", Damage: "cut off"}}, 1},
		"a deleted one":                      {map[string]history.Version{rex: hit, "bella": {Number: 1, Token: "x"}}, 1},
		"one that is not there":              {map[string]history.Version{rex: hit, "max": {Number: 1, Token: "x"}}, 1},
		"one that nobody knows":              {map[string]history.Version{rex: hit, "luna": {Number: 1, Token: "x"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			violations := history.CheckSearch(history.Search{By: "two", Found: test.found}, readings)
			if len(violations) != test.want {
				t.Errorf("got %v, want %d violations", violations, test.want)
			}
		})
	}
}
