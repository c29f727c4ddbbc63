package sqlplan

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// periodAreas returns the areas of a condition that is a PeriodIs, or an Any of several PeriodIs of
// one parameter. It returns none for any other condition.
func periodAreas(condition store.Condition) (param string, all []store.PeriodArea) {
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

// areaOf returns the area of a condition. No period ends before it begins, so an upper bound of the
// end is also an upper bound of the beginning.
func areaOf(is store.PeriodIs) store.PeriodArea {
	is.From.Most = min(is.From.Most, is.Until.Most)
	return store.PeriodArea{From: is.From, Until: is.Until}
}

// anyPeriod returns the condition that a row of ix_date, named x, is in one of several areas. If
// ranged is true, it starts with the range that spans all areas, at whose bounds Postgres can start
// and end an index scan.
func anyPeriod(s *Statement, areas []store.PeriodArea, ranged bool) string {
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

// periodPath returns the path of records with a period in one of the areas.
func (c *compiler) periodPath(typeName, param string, areas ...store.PeriodArea) *accessPath {
	return c.rangePath(classPeriod, "ix_date", c.index.Hash.Param(typeName, param), func() string {
		return anyPeriod(c.Statement, areas, true)
	})
}

// singlePeriodPath returns the path of a SinglePeriodIn. Its list reads one index range for each
// area.
func (c *compiler) singlePeriodPath(typeName string, is store.SinglePeriodIn) *accessPath {
	path := c.periodPath(typeName, is.Param, is.Areas...)
	if len(is.Areas) == 1 {
		return path
	}
	path.list = func() (string, error) {
		parts := make([]string, len(is.Areas))
		for i, area := range is.Areas {
			var err error
			if parts[i], err = c.periodPath(typeName, is.Param, area).list(); err != nil {
				return "", err
			}
		}
		return strings.Join(parts, " UNION ALL "), nil
	}
	return path
}

// scanOnlyPath returns a path that has a scan but no list, for a condition on the periods of one
// parameter (periodAreas). It is meant for periods that no index range can find, such as those that
// end after some time. If there is no other condition, the scan reads only the index. scanOnlyPath
// returns nil for all other conditions.
func (c *compiler) scanOnlyPath(typeName string, condition store.Condition) *accessPath {
	param, areas := periodAreas(condition)
	if len(areas) == 0 {
		return nil
	}
	path := c.periodPath(typeName, param, areas...)
	path.list = nil
	return path
}
