package search

import (
	"cmp"
	"slices"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// maxAreas is the maximum number of areas of all conditions on one moment, or of the ranges of
// instants in which conditions on _lastUpdated intersect. Conditions with more are not intersected.
const maxAreas = 16

// intersectDates intersects all conditions on the same moment: on _lastUpdated, or on a parameter
// of which a record has at most one date, dateTime or instant. One value must meet all of them, so
// the two ends of a range become one range. Conditions in chains and _has stay as they are, because
// different records may meet each of them.
func intersectDates(types []string, where store.All) store.All {
	moments := make([]string, len(where)) // the parameters of the conditions that can be intersected
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
		if areas, ok := intersectAreas(groups); ok {
			whole[param] = singlePeriodIn(param, areas)
		}
	}
	if either, ok := intersectRanges(ranges); ok {
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
	d, ok := commonDefinition(types, param)
	return ok && d.isOneMoment()
}

func singlePeriodIn(param string, areas []store.PeriodArea) store.Condition {
	if len(areas) == 0 {
		return store.Any{}
	}
	return store.SinglePeriodIn{Param: param, Areas: areas}
}

// alternativesIn returns the alternatives of an Any, or the condition itself.
func alternativesIn(condition store.Condition) []store.Condition {
	if either, ok := condition.(store.Any); ok {
		return either
	}
	return []store.Condition{condition}
}

// areasOf returns the areas of a condition on the periods of one parameter. For any other condition
// the parameter is empty.
func areasOf(condition store.Condition) (param string, areas []store.PeriodArea) {
	for _, alternative := range alternativesIn(condition) {
		is, ok := alternative.(store.PeriodIs)
		if !ok || param != "" && is.Param != param {
			return "", nil
		}
		param, areas = is.Param, append(areas, store.PeriodArea{From: is.From, Until: is.Until})
	}
	return param, areas
}

// rangesOf returns the ranges of a condition on _lastUpdated, or nil for any other condition.
func rangesOf(condition store.Condition) (ranges []store.TimeRange) {
	for _, alternative := range alternativesIn(condition) {
		is, ok := alternative.(store.UpdatedIn)
		if !ok {
			return nil
		}
		ranges = append(ranges, store.TimeRange(is))
	}
	return ranges
}

// intersectRanges returns the instants that are in a range of each group. ok is false if there is no
// group, or if the result would have more than maxAreas ranges.
func intersectRanges(groups [][]store.TimeRange) (ranges []store.TimeRange, ok bool) {
	if len(groups) == 0 {
		return nil, false
	}
	ranges = groups[0]
	for _, group := range groups[1:] {
		var both []store.TimeRange
		for _, a := range ranges {
			for _, b := range group {
				if r := a.Intersection(b); !r.Empty() {
					both = append(both, r)
				}
			}
		}
		if ranges = both; len(ranges) > maxAreas {
			return nil, false
		}
	}
	return ranges, true
}

// intersectAreas returns the areas of the moments that are in at least one area of each group. ok
// is false if the groups have more than maxAreas areas, or if the ends of the moments with one
// beginning are not one range.
func intersectAreas(groups [][]store.PeriodArea) (areas []store.PeriodArea, ok bool) {
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
	if count > maxAreas {
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
			areas = appendArea(areas, store.PeriodArea{From: from, Until: until[0]})
		default:
			return nil, false
		}
	}
	var result []store.PeriodArea
	for _, area := range areas {
		result = append(result, narrow(area)...)
	}
	return result, true
}

// appendArea appends an area, or extends the last one if next follows it with the same ends.
func appendArea(areas []store.PeriodArea, next store.PeriodArea) []store.PeriodArea {
	if last := len(areas) - 1; last >= 0 && areas[last].Until == next.Until && areas[last].From.Most+1 == next.From.Least {
		areas[last].From.Most = next.From.Most
		return areas
	}
	return append(areas, next)
}

// endsIn returns the bounds of the ends of the periods that begin within from and are in an area of
// each group. from must not cross the boundary of an area.
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
		found = mergeBounds(both)
	}
	return found
}

// mergeBounds merges bounds that overlap or are adjacent.
func mergeBounds(all []store.Bounds) []store.Bounds {
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

// The maximum lengths of moments in microseconds. A moment that is longer than a day is a year or a
// month of UTC, because dates have no zone.
const (
	day  = int64(24 * time.Hour / time.Microsecond)
	year = 366 * day
)

// narrow limits the beginnings of an area by its ends, because indexes are ordered by beginnings. A
// moment that ends after a time begins at most a day before it, or with the month or year of that
// time.
func narrow(area store.PeriodArea) []store.PeriodArea {
	from, until := area.From, area.Until
	if until.Most < store.TheEnd {
		from.Most = min(from.Most, until.Most-1)
	}
	var areas []store.PeriodArea
	if until.Least > store.TheBeginning {
		from.Least = max(from.Least, until.Least-day)
		for _, long := range yearAndMonth(until.Least - 1) {
			at := store.PeriodArea{From: store.Bounds{Least: long.From, Most: long.From}, Until: until}
			if area.Matches(long) && long.From < until.Least-day && !slices.Contains(areas, at) {
				areas = append(areas, at)
			}
		}
	}
	if from.Empty() {
		return areas
	}
	// A bound of the ends need not be compared if all moments with these beginnings are within it.
	if until.Least <= from.Least+1 {
		until.Least = store.TheBeginning
	}
	if from.Most < store.TheEnd && until.Most >= from.Most+year {
		until.Most = store.TheEnd
	}
	return append(areas, store.PeriodArea{From: from, Until: until})
}

// yearAndMonth returns the year and the month that contain a time.
func yearAndMonth(micros int64) [2]store.Period {
	t := time.UnixMicro(micros).UTC()
	first := func(year int, month time.Month) int64 {
		return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	}
	return [2]store.Period{
		{From: first(t.Year(), 1), Until: first(t.Year()+1, 1)},
		{From: first(t.Year(), t.Month()), Until: first(t.Year(), t.Month()+1)},
	}
}
