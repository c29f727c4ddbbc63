package search

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Criteria returns the conditions of the query in a canonical form, or "" if there are none. The
// form is the same for queries that differ only in the order of parameters and alternatives, or in
// upper and lower case of values for which case does not matter.
func (q Query) Criteria() string {
	if q.unintersected == nil {
		return ""
	}
	return canonicalForm(q.unintersected)
}

func canonicalForm(c store.Condition) string {
	switch c := c.(type) {
	case store.All:
		return canonicalSet(" and ", c)
	case store.Any:
		return canonicalSet(" or ", c)
	case store.Not:
		return "not " + canonicalForm(c.Condition)
	case store.IDIn:
		ids := slices.Clone(c)
		slices.Sort(ids)
		return "_id=" + strings.Join(slices.Compact(ids), ",")
	case store.UpdatedIn:
		return "_lastUpdated[" + canonicalTime(c.From) + "," + canonicalTime(c.Until) + ")"
	case store.TokenIs:
		return c.Param + "=" + canonicalToken(c)
	case store.PairIs:
		return c.Param + "=" + canonicalToken(c.First) + "$" + canonicalToken(c.Second)
	case store.Chain:
		return c.Param + ":" + c.Type + "." + canonicalForm(c.Where)
	case store.ReferredBy:
		return "_has:" + c.Type + ":" + c.Param + ":" + canonicalForm(c.Where)
	default: // conditions that have only strings and numbers
		return fmt.Sprintf("%#v", c)
	}
}

func canonicalSet[S ~[]store.Condition](word string, set S) string {
	parts := make([]string, len(set))
	for i, each := range set {
		parts[i] = canonicalForm(each)
	}
	slices.Sort(parts)
	parts = slices.Compact(parts)
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, word) + ")"
}

// canonicalTime returns a time in microseconds, with nanoseconds as a fraction if there are any.
func canonicalTime(t time.Time) string {
	text := strconv.FormatInt(t.UnixMicro(), 10)
	if rest := t.Nanosecond() % 1000; rest > 0 {
		text += fmt.Sprintf(".%03d", rest)
	}
	return text
}

func canonicalToken(c store.TokenIs) string {
	part := func(text *string) string {
		if text == nil {
			return "*"
		}
		return fmt.Sprintf("%q", *text)
	}
	return part(c.System) + "|" + part(c.Code)
}
