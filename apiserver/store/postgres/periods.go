package postgres

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// periodsOf takes a condition apart that is, or is one of, periods of a parameter; there are
// none if it asks for anything else.
func periodsOf(condition store.Condition) (param string, all []store.PeriodIs) {
	alternatives, ok := condition.(store.Any)
	if !ok {
		alternatives = store.Any{condition}
	}
	for _, alternative := range alternatives {
		is, ok := alternative.(store.PeriodIs)
		if !ok || len(all) > 0 && is.Param != param {
			return "", nil
		}
		param, all = is.Param, append(all, is)
	}
	return param, all
}

// anyPeriod are the rows of ix_date, named x, that one of several conditions takes.
func anyPeriod(s *statement, alternatives []store.PeriodIs, ranged bool) string {
	parts := make([]string, len(alternatives))
	for i, is := range alternatives {
		parts[i] = period(s, is, ranged)
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

// periods is the list of records with any of some periods.
func (c *compiler) periods(typeName, param string, alternatives []store.PeriodIs) *list {
	return c.ranged(rankPeriod, "ix_date", c.site.hash.param(typeName, param), func() string {
		return anyPeriod(c.statement, alternatives, true)
	})
}

// gatherWalked is the list of a condition that can only be walked, such as one on all that
// ends after a time: where nothing else is asked, it needs no more than the index. There is
// none of conditions on anything but a parameter's periods.
func (c *compiler) gatherWalked(typeName string, condition store.Condition) *list {
	param, alternatives := periodsOf(condition)
	if len(alternatives) == 0 {
		return nil
	}
	walked := c.periods(typeName, param, alternatives)
	walked.from = nil
	return walked
}
