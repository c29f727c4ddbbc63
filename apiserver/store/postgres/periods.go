package postgres

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// periodsOf takes a condition apart that is, or is one of, periods of a parameter; there are
// none if it asks for anything else.
func periodsOf(condition store.Condition) (param string, all []store.PeriodArea) {
	alternatives, ok := condition.(store.Any)
	if !ok {
		alternatives = store.Any{condition}
	}
	for _, alternative := range alternatives {
		is, ok := alternative.(store.PeriodIs)
		if !ok || len(all) > 0 && is.Param != param {
			return "", nil
		}
		param, all = is.Param, append(all, areaOf(is))
	}
	return param, all
}

// areaOf is the area of a condition. Nothing ends before it begins: a bound on the end is one
// on the beginning.
func areaOf(is store.PeriodIs) store.PeriodArea {
	is.From.Most = min(is.From.Most, is.Until.Most)
	return store.PeriodArea{From: is.From, Until: is.Until}
}

// anyPeriod are the rows of ix_date, named x, that one of several areas has. The range that
// all of them are in comes first: an index decides on that by itself.
func anyPeriod(s *statement, areas []store.PeriodArea, ranged bool) string {
	if len(areas) == 1 {
		return period(s, areas[0], ranged)
	}
	whole := store.PeriodArea{From: areas[0].From, Until: store.Unbounded}
	parts := make([]string, len(areas))
	for i, area := range areas {
		whole.From.Least = min(whole.From.Least, area.From.Least)
		whole.From.Most = max(whole.From.Most, area.From.Most)
		parts[i] = "(" + period(s, area, ranged) + ")"
	}
	return period(s, whole, ranged) + " AND (" + strings.Join(parts, " OR ") + ")"
}

// periods is the list of records with a period in one of some areas.
func (c *compiler) periods(typeName, param string, areas ...store.PeriodArea) *list {
	return c.ranged(rankPeriod, "ix_date", c.site.hash.param(typeName, param), func() string {
		return anyPeriod(c.statement, areas, true)
	})
}

// gatherSinglePeriod is the list of records whose period is in one of some areas, each of
// which is a range of an index.
func (c *compiler) gatherSinglePeriod(typeName string, is store.SinglePeriodIn) *list {
	l := c.periods(typeName, is.Param, is.Areas...)
	if len(is.Areas) == 1 {
		return l
	}
	l.from = func() (string, error) {
		parts := make([]string, len(is.Areas))
		for i, area := range is.Areas {
			var err error
			if parts[i], err = c.periods(typeName, is.Param, area).from(); err != nil {
				return "", err
			}
		}
		return strings.Join(parts, " UNION ALL "), nil
	}
	return l
}

// gatherWalked is the list of a condition that can only be walked, such as one on all that
// ends after a time: where nothing else is asked, it needs no more than the index. There is
// none of conditions on anything but a parameter's periods.
func (c *compiler) gatherWalked(typeName string, condition store.Condition) *list {
	param, areas := periodsOf(condition)
	if len(areas) == 0 {
		return nil
	}
	walked := c.periods(typeName, param, areas...)
	walked.from = nil
	return walked
}
