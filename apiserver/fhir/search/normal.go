package search

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Criteria are the conditions of the query in a form that is the same for all queries
// which differ only in the order of parameters and of alternatives, or in the case of
// what is compared without it.
func (q Query) Criteria() string {
	if q.written == nil {
		return ""
	}
	return normal(q.written)
}

func normal(c store.Condition) string {
	switch c := c.(type) {
	case store.All:
		return normalSet(" and ", c)
	case store.Any:
		return normalSet(" or ", c)
	case store.Not:
		return "not " + normal(c.Condition)
	case store.IDIn:
		ids := slices.Clone(c)
		slices.Sort(ids)
		return "_id=" + strings.Join(slices.Compact(ids), ",")
	case store.UpdatedIn:
		return "_lastUpdated[" + normalTime(c.From) + "," + normalTime(c.Until) + ")"
	case store.TokenIs:
		return c.Param + "=" + normalToken(c)
	case store.PairIs:
		return c.Param + "=" + normalToken(c.First) + "$" + normalToken(c.Second)
	case store.Chain:
		return c.Param + ":" + c.Type + "." + normal(c.Where)
	case store.ReferredBy:
		return "_has:" + c.Type + ":" + c.Param + ":" + normal(c.Where)
	default: // what consists of texts and numbers only
		return fmt.Sprintf("%#v", c)
	}
}

func normalSet[S ~[]store.Condition](word string, set S) string {
	parts := make([]string, len(set))
	for i, each := range set {
		parts[i] = normal(each)
	}
	slices.Sort(parts)
	parts = slices.Compact(parts)
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, word) + ")"
}

// normalTime is a time in microseconds, with a fraction of nanoseconds if there is one.
func normalTime(t time.Time) string {
	text := strconv.FormatInt(t.UnixMicro(), 10)
	if rest := t.Nanosecond() % 1000; rest > 0 {
		text += fmt.Sprintf(".%03d", rest)
	}
	return text
}

func normalToken(c store.TokenIs) string {
	part := func(text *string) string {
		if text == nil {
			return "*"
		}
		return fmt.Sprintf("%q", *text)
	}
	return part(c.System) + "|" + part(c.Code)
}
