package search

import (
	"cmp"
	"slices"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// maxJoined limits the areas, or the ranges of instants, that are joined to one condition.
// Conditions that have more together stay as they are.
const maxJoined = 16

// joined joins all conditions on one moment: on a parameter of which a record has at most one
// date, dateTime or instant, or on _lastUpdated. All of them must hold for the same value, so
// two ends of a range become one range. Nothing is joined inside chains and _has, which are
// independent of each other.
func joined(types []string, where store.All) store.All {
	moments := make([]string, len(where)) // the parameters of the conditions that can be joined
	periods, ranges := map[string][][]store.PeriodArea{}, [][]store.TimeRange{}
	for i, condition := range where {
		if param, areas := areasOf(condition); isOneMoment(types, param) {
			moments[i] = param
			periods[param] = append(periods[param], areas)
		}
		if either := rangesOf(condition); either != nil {
			moments[i] = paramLastUpdated
			ranges = append(ranges, either)
		}
	}
	whole := map[string]store.Condition{}
	for param, groups := range periods {
		if areas, ok := joinAreas(groups); ok {
			whole[param] = singlePeriodIn(param, areas)
		}
	}
	if either, ok := joinRanges(ranges); ok {
		whole[paramLastUpdated] = updatedIn(either)
	}
	var result store.All
	for i, condition := range where {
		instead, ok := whole[moments[i]]
		switch {
		case !ok:
			result = append(result, condition)
		case slices.Index(moments, moments[i]) == i:
			result = append(result, instead)
		}
	}
	return result
}

func isOneMoment(types []string, param string) bool {
	d, ok := shared(types, param)
	return ok && d.isOneMoment()
}

func singlePeriodIn(param string, areas []store.PeriodArea) store.Condition {
	if len(areas) == 0 {
		return store.Any{}
	}
	return store.SinglePeriodIn{Param: param, Areas: areas}
}

// alternativesOf are the alternatives of a condition: those of an Any, or itself.
func alternativesOf(condition store.Condition) []store.Condition {
	if either, ok := condition.(store.Any); ok {
		return either
	}
	return []store.Condition{condition}
}

// areasOf takes a condition on the periods of one parameter apart. The parameter is empty
// where the condition is another.
func areasOf(condition store.Condition) (param string, areas []store.PeriodArea) {
	for _, alternative := range alternativesOf(condition) {
		is, ok := alternative.(store.PeriodIs)
		if !ok || param != "" && is.Param != param {
			return "", nil
		}
		param, areas = is.Param, append(areas, store.PeriodArea{From: is.From, Until: is.Until})
	}
	return param, areas
}

// rangesOf takes a condition on the time of the last update apart. It is nil where the
// condition is another.
func rangesOf(condition store.Condition) (ranges []store.TimeRange) {
	for _, alternative := range alternativesOf(condition) {
		is, ok := alternative.(store.UpdatedIn)
		if !ok {
			return nil
		}
		ranges = append(ranges, store.TimeRange(is))
	}
	return ranges
}

// joinRanges finds the ranges of the instants that are in a range of each group.
func joinRanges(groups [][]store.TimeRange) (joined []store.TimeRange, ok bool) {
	if len(groups) == 0 {
		return nil, false
	}
	joined = groups[0]
	for _, group := range groups[1:] {
		var both []store.TimeRange
		for _, a := range joined {
			for _, b := range group {
				if r := a.Intersection(b); !r.Empty() {
					both = append(both, r)
				}
			}
		}
		if joined = both; len(joined) > maxJoined {
			return nil, false
		}
	}
	return joined, true
}

// joinAreas finds where a moment is that is in an area of each group: the areas of a
// SinglePeriodIn. Ok is false where they are too many, or are not one for each beginning.
func joinAreas(groups [][]store.PeriodArea) (joined []store.PeriodArea, ok bool) {
	starts := []int64{store.TheBeginning}
	count := 0
	for _, group := range groups {
		for _, area := range group {
			count++
			starts = append(starts, area.From.Least)
			if area.From.Most < store.TheEnd {
				starts = append(starts, area.From.Most+1)
			}
		}
	}
	if count > maxJoined {
		return nil, false
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	for i, least := range starts {
		from := store.Bounds{Least: least, Most: store.TheEnd}
		if i+1 < len(starts) {
			from.Most = starts[i+1] - 1
		}
		switch until := endsIn(groups, from); len(until) {
		case 0:
		case 1:
			joined = appendArea(joined, store.PeriodArea{From: from, Until: until[0]})
		default:
			return nil, false
		}
	}
	var narrow []store.PeriodArea
	for _, area := range joined {
		narrow = append(narrow, narrowed(area)...)
	}
	return narrow, true
}

// appendArea makes areas one that follow each other and end alike.
func appendArea(areas []store.PeriodArea, next store.PeriodArea) []store.PeriodArea {
	if last := len(areas) - 1; last >= 0 && areas[last].Until == next.Until && areas[last].From.Most+1 == next.From.Least {
		areas[last].From.Most = next.From.Most
		return areas
	}
	return append(areas, next)
}

// endsIn are the bounds in one of which periods end that begin within from, which no area
// divides, and are in an area of each group.
func endsIn(groups [][]store.PeriodArea, from store.Bounds) []store.Bounds {
	found := []store.Bounds{store.Unbounded}
	for _, group := range groups {
		var both []store.Bounds
		for _, area := range group {
			if area.From.Least > from.Least || from.Most > area.From.Most {
				continue
			}
			for _, until := range found {
				if b := until.Intersection(area.Until); !b.Empty() {
					both = append(both, b)
				}
			}
		}
		found = merged(both)
	}
	return found
}

// merged makes bounds one that overlap or follow each other.
func merged(all []store.Bounds) []store.Bounds {
	slices.SortFunc(all, func(a, b store.Bounds) int { return cmp.Compare(a.Least, b.Least) })
	var result []store.Bounds
	for _, b := range all {
		last := len(result) - 1
		if last >= 0 && (result[last].Most == store.TheEnd || b.Least <= result[last].Most+1) {
			result[last].Most = max(result[last].Most, b.Most)
		} else {
			result = append(result, b)
		}
	}
	return result
}

// The lengths of moments: years and months begin with a year or a month of UTC, as dates
// have no zone, and all others are no longer than a day.
const (
	day  = int64(24 * time.Hour / time.Microsecond)
	year = 366 * day
)

// narrowed bounds an area's beginnings by its ends, as indexes lead by beginnings: a moment
// that ends behind a time begins at most a day before it, or with the month or the year that
// the time is in.
func narrowed(area store.PeriodArea) []store.PeriodArea {
	from, until := area.From, area.Until
	if until.Most < store.TheEnd {
		from.Most = min(from.Most, until.Most-1)
	}
	var areas []store.PeriodArea
	if until.Least > store.TheBeginning {
		from.Least = max(from.Least, until.Least-day)
		for _, long := range around(until.Least - 1) {
			at := store.PeriodArea{From: store.Bounds{Least: long.From, Most: long.From}, Until: until}
			if area.Matches(long) && long.From < until.Least-day && !slices.Contains(areas, at) {
				areas = append(areas, at)
			}
		}
	}
	if from.Empty() {
		return areas
	}
	// What holds for all that begin there need not be compared.
	if until.Least <= from.Least+1 {
		until.Least = store.TheBeginning
	}
	if from.Most < store.TheEnd && until.Most >= from.Most+year {
		until.Most = store.TheEnd
	}
	return append(areas, store.PeriodArea{From: from, Until: until})
}

// around are the year and the month of a time.
func around(micros int64) [2]store.Period {
	t := time.UnixMicro(micros).UTC()
	first := func(year int, month time.Month) int64 {
		return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	}
	return [2]store.Period{
		{From: first(t.Year(), 1), Until: first(t.Year()+1, 1)},
		{From: first(t.Year(), t.Month()), Until: first(t.Year(), t.Month()+1)},
	}
}
