package sqlplan

import (
	"bytes"
	"math"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// equals returns the condition that a column equals one of the values.
func (s *Statement) equals(columnName string, values []int64) string {
	if len(values) == 1 {
		return columnName + " = " + s.Arg(values[0])
	}
	return columnName + " = ANY(" + s.Arg(values) + "::int8[])"
}

// token returns the condition that a row of tokens, named x, with one of some keys meets a TokenIs.
func token(s *Statement, hash indexrow.Hasher, keys []int64, is store.TokenIs) string {
	where := "x.site = $1 AND " + s.equals("x.key", keys)
	if is.Code != nil {
		where += " AND x.code = " + s.Arg(hash.Code(*is.Code))
	}
	if is.System != nil {
		where += " AND x.sys = " + s.Arg(hash.System(*is.System))
	}
	return where
}

// text returns the condition that a row of ix_str or ix_text, named x, meets a TextIs. Rows of ix_text
// are searched by StartsWith only, as they have no columns whole and orig. For StartsWith with a text
// of at most indexrow.MaxIndexedBytes, ranged selects a form for which Postgres can use the index by
// value. All other forms prevent that.
func text(s *Statement, is store.TextIs, ranged bool) string {
	wanted := []byte(is.Text)
	const folded, original = "COALESCE(x.whole, x.val)", "COALESCE(x.orig, x.whole, x.val)"
	beginsWith := func(of string) string {
		return "substring(" + of + " FROM 1 FOR " + s.Arg(len(wanted)) + "::int) = " + s.Arg(wanted) + "::bytea"
	}
	switch is.Match {
	case store.Contains:
		return "position(" + s.Arg(wanted) + "::bytea IN " + folded + ") > 0"
	case store.Exactly:
		return original + " = " + s.Arg(wanted)
	case store.StartsExactly:
		return beginsWith(original)
	}
	switch end := prefixEnd(wanted[:min(len(wanted), indexrow.MaxIndexedBytes)]); {
	case len(wanted) > indexrow.MaxIndexedBytes:
		return beginsWith(folded)
	case !ranged:
		return beginsWith("x.val")
	case end == nil:
		return "x.val >= " + s.Arg(wanted)
	default:
		return "x.val >= " + s.Arg(wanted) + " AND x.val < " + s.Arg(end)
	}
}

// period returns the condition that a row of ix_date, named x, is in an area. ranged is as for
// text.
func period(s *Statement, area store.PeriodArea, ranged bool) string {
	lo := "x.lo"
	if !ranged {
		lo = "x.lo + 0"
	}
	var where []string
	if area.From.Least != store.TheBeginning {
		where = append(where, lo+" >= "+s.Arg(area.From.Least))
	}
	if area.From.Most != store.TheEnd {
		where = append(where, lo+" <= "+s.Arg(area.From.Most))
	}
	if area.Until != store.Unbounded {
		where = append(where, "x.hi BETWEEN "+s.Arg(area.Until.Least)+" AND "+s.Arg(area.Until.Most))
	}
	if len(where) == 0 {
		return always
	}
	return strings.Join(where, " AND ")
}

// point returns the condition that a row of ix_pos, named x, meets a Near.
func point(s *Statement, is store.Near) string {
	lat, lon := s.Arg(is.Center.Latitude)+"::float8", s.Arg(is.Center.Longitude)+"::float8"
	reach := is.Meters/store.EarthRadius*180/math.Pi + 1e-6
	haversine := "power(sin(radians(x.lat - " + lat + ") / 2), 2) + cos(radians(" + lat + ")) * cos(radians(x.lat)) * power(sin(radians(x.lon - " + lon + ") / 2), 2)"
	return "x.lat BETWEEN " + s.Arg(is.Center.Latitude-reach) + " AND " + s.Arg(is.Center.Latitude+reach) +
		" AND 2 * " + s.Arg(store.EarthRadius) + "::float8 * asin(sqrt(least(1, " + haversine + "))) <= " + s.Arg(is.Meters) + "::float8"
}

// prefixEnd returns the least value that is greater than all values with the prefix, or nil if
// there is none.
func prefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
