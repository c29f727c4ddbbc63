package search

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

func TestIntersectPeriods(t *testing.T) {
	micros := func(date string) int64 {
		from, _, ok := r4.Microseconds([]byte(date))
		if !ok {
			t.Fatal(date)
		}
		return from
	}
	between := func(from, until string) store.Bounds {
		return store.Bounds{Least: micros(from), Most: micros(until) - 1}
	}
	on := func(date string) store.Bounds { return store.Bounds{Least: micros(date), Most: micros(date)} }
	by := func(date string) store.Bounds { return atMost(micros(date)) }
	behind := func(date string) store.Bounds { return atLeast(micros(date) + 1) }
	for query, want := range map[string][]store.PeriodArea{
		"birthdate=1990-02": {{From: between("1990-02-01", "1990-03-01"), Until: by("1990-03-01")}},
		"birthdate=ge1990-02-01&birthdate=lt1990-03-01": {
			{From: on("1990-01-01"), Until: behind("1990-02-02")}, {From: between("1990-02-01", "1990-03-01"), Until: store.Unbounded},
		},
		"birthdate=ge1990-02-01&birthdate=le1990-02-28": {
			{From: on("1990-01-01"), Until: behind("1990-02-02")},
			{From: between("1990-02-01", "1990-02-28"), Until: store.Unbounded},
			{From: between("1990-02-28", "1990-03-01"), Until: by("1990-03-01")},
		},
		"birthdate=ge1990-02-10&birthdate=lt1990-03-01": {
			{From: on("1990-01-01"), Until: behind("1990-02-11")},
			{From: on("1990-02-01"), Until: behind("1990-02-11")},
			{From: between("1990-02-10", "1990-03-01"), Until: store.Unbounded},
		},
		"birthdate=ge1990&birthdate=lt1991":            {{From: between("1990-01-01", "1991-01-01"), Until: store.Unbounded}},
		"birthdate=1990&birthdate=1990-02":             {{From: between("1990-02-01", "1990-03-01"), Until: by("1990-03-01")}},
		"birthdate=1990-01,1990-03&birthdate=1990":     {{From: between("1990-01-01", "1990-02-01"), Until: by("1990-02-01")}, {From: between("1990-03-01", "1990-04-01"), Until: by("1990-04-01")}},
		"birthdate=ge1990-02-01":                       {{From: on("1990-01-01"), Until: behind("1990-02-02")}, {From: atLeast(micros("1990-02-01")), Until: store.Unbounded}},
		"birthdate=lt1990-02-01":                       {{From: store.Bounds{Least: store.TheBeginning, Most: micros("1990-02-01") - 1}, Until: store.Unbounded}},
		"birthdate=ge1990-02&birthdate=lt1990-01":      nil,
		"birthdate=1990&birthdate=1991":                nil,
		"death-date=ge1990-02-01&death-date=eb1990-03": {{From: between("1990-02-01", "1990-03-01"), Until: by("1990-03-01")}},
	} {
		q, err := Parse(values(t, query), Options{Type: "Patient", Now: now})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		param, _, _ := strings.Cut(query, "=")
		var expected store.Condition = store.SinglePeriodIn{Param: param, Areas: want}
		if want == nil {
			expected = store.Any{}
		}
		if diff := cmp.Diff(store.All{expected}, q.Where); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}

// TestNotIntersected shows that periods and conditions on different records or of different kinds
// are not intersected.
func TestNotIntersected(t *testing.T) {
	for query, typeName := range map[string]string{
		"date=ge1990&date=lt1991": "PractitionerRole",
		"general-practitioner:Practitioner._lastUpdated=ge1990&general-practitioner:Practitioner._lastUpdated=lt1991": "Patient",
		"link:RelatedPerson.birthdate=ge1990&link:RelatedPerson.birthdate=lt1991":                                     "Patient",
		"_has:Person:patient:birthdate=ge1990&_has:Person:patient:birthdate=lt1991":                                   "Patient",
		"birthdate:missing=false&death-date:missing=false":                                                            "Patient",
		"birthdate=eq1990,gt2000&birthdate=lt2010":                                                                    "Patient",
		"birthdate=" + strings.Repeat("1990-01,", 16) + "1991-01&birthdate=lt2010":                                    "Patient",
	} {
		q, err := Parse(values(t, query), Options{Type: typeName, Now: now})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if diff := cmp.Diff(q.unintersected, q.Where); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}

func TestIntersectInstants(t *testing.T) {
	begin := func(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
	in := func(from, until int) store.UpdatedIn { return store.UpdatedIn{From: begin(from), Until: begin(until)} }
	for query, want := range map[string]store.Condition{
		"_lastUpdated=ge2020&_lastUpdated=lt2022":                                       in(2020, 2022),
		"_lastUpdated=ge2020&_lastUpdated=le2020":                                       in(2020, 2021),
		"_lastUpdated=ge2020&_lastUpdated=lt2020":                                       store.Any{},
		"_lastUpdated=2020,2022&_lastUpdated=lt2030":                                    store.Any{in(2020, 2021), in(2022, 2023)},
		"_lastUpdated=2020,2022&_lastUpdated=lt2022":                                    in(2020, 2021),
		"_lastUpdated=ge2020&_lastUpdated=lt2030&_lastUpdated=lt2024&_lastUpdated=2021": in(2021, 2022),
	} {
		q, err := Parse(values(t, query), Options{Type: "Patient", Now: now})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if diff := cmp.Diff(store.All{want}, q.Where); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}

// TestIntersectionIsEquivalent compares random conditions on a moment with their intersection, for
// moments of all precisions.
func TestIntersectionIsEquivalent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	moment := func() string {
		date := pick("1989", "1990", "1991")
		if r.IntN(8) == 0 {
			return date
		}
		date += pick("-01", "-02", "-03", "-12")
		if r.IntN(5) == 0 {
			return date
		}
		date += pick("-01", "-02", "-15", "-27", "-28")
		if r.IntN(3) > 0 {
			return date
		}
		return date + pick("T00:00:00", "T23:59:59", "T12:30:00", "T12:30:00.5", "T12:30:00.500001", "T12:30:00.5000004", "T00:00:00.000001") + pick("Z", "+02:00", "-02:00")
	}
	var moments []store.IndexValue
	for range 400 {
		moments = append(moments, stored(t, "death-date", moment()))
	}
	wasJoined, found := 0, 0
	for range 4000 {
		var given []string
		for range 1 + r.IntN(3) {
			var alternatives []string
			for range 1 + r.IntN(6)/4 {
				alternatives = append(alternatives, pick("", "eq", "ne", "gt", "lt", "ge", "le", "sa", "eb", "ap")+moment())
			}
			given = append(given, "death-date="+strings.ReplaceAll(strings.Join(alternatives, ","), "+", "%2B"))
		}
		query := strings.Join(given, "&")
		q, err := Parse(values(t, query), Options{Type: "Patient", Now: now})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if fmt.Sprint(q.unintersected) == fmt.Sprint(q.Where) {
			continue
		}
		wasJoined++
		for _, entry := range moments {
			want := evaluate(q.unintersected, []store.IndexValue{entry}, nil)
			if want == isTrue {
				found++
			}
			if got := evaluate(q.Where, []store.IndexValue{entry}, nil); got != want {
				t.Fatalf("%s of %v: got %v, want %v by %v", query, entry.Value, got, want, q.Where)
			}
		}
	}
	if wasJoined < 3000 || found < 100_000 {
		t.Errorf("%d queries were intersected, %d moments found", wasJoined, found)
	}
}

// TestCriteriaAreStable shows that the canonical form of criteria does not change between releases,
// because replicas of both claim it in conditional creates.
func TestCriteriaAreStable(t *testing.T) {
	for query, want := range map[string]string{
		"birthdate=ge1990&birthdate=lt1991": `((store.PeriodIs{Param:"birthdate", From:store.Bounds{Least:-9223372036854775808, Most:9223372036854775807}, Until:store.Bounds{Least:662688000000001, Most:9223372036854775807}} or ` +
			`store.PeriodIs{Param:"birthdate", From:store.Bounds{Least:631152000000000, Most:9223372036854775807}, Until:store.Bounds{Least:-9223372036854775808, Most:662688000000000}}) and ` +
			`store.PeriodIs{Param:"birthdate", From:store.Bounds{Least:-9223372036854775808, Most:662687999999999}, Until:store.Bounds{Least:-9223372036854775808, Most:9223372036854775807}})`,
		"_lastUpdated=ge1990&_lastUpdated=lt1991":     "(_lastUpdated[-62135596800000000,662688000000000) and _lastUpdated[631152000000000,-62135596800000000))",
		"_lastUpdated=gt1990-01-01T00:00:00.1230001Z": "_lastUpdated[631152000123000.200,-62135596800000000)",
	} {
		q, err := ParseCriteria(values(t, query), Options{Type: "Patient", Now: now})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, q.Criteria()); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}
