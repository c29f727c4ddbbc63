package randomsearch

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

// Filter is one parameter of a query: its name and value as they are written, and the condition that
// it means.
type Filter struct {
	Name, Value string
	Holds       func(w *World, r *Record) bool
}

// test reports whether a record meets a condition, such as one alternative of a filter.
type test func(w *World, r *Record) bool

// anyOf returns a test that holds if at least one of the tests holds.
func anyOf(tests []test) test {
	return func(w *World, r *Record) bool {
		return slices.ContainsFunc(tests, func(t test) bool { return t(w, r) })
	}
}

func not(t test) test {
	return func(w *World, r *Record) bool { return !t(w, r) }
}

// present returns the test of :missing=false.
func present(param string) test {
	return func(_ *World, r *Record) bool { return len(r.values[param]) > 0 }
}

// tokenIs returns a test of tokens. A nil system or code matches any.
func tokenIs(param string, system, code *string) test {
	return func(_ *World, r *Record) bool {
		return has(r, param, func(t store.Token) bool { return tokenMatches(t, system, code) })
	}
}

func tokenMatches(t store.Token, system, code *string) bool {
	return (system == nil || *system == t.System) && (code == nil || searchtruth.Lower(*code) == searchtruth.Lower(t.Code))
}

func startsWith(param, text string) test {
	return func(_ *World, r *Record) bool {
		return has(r, param, func(t store.Text) bool {
			return strings.HasPrefix(searchtruth.Folded(t.Original), searchtruth.Folded(text))
		})
	}
}

func contains(param, text string) test {
	return func(_ *World, r *Record) bool {
		return has(r, param, func(t store.Text) bool {
			return strings.Contains(searchtruth.Folded(t.Original), searchtruth.Folded(text))
		})
	}
}

func exactly(param, text string) test {
	return func(_ *World, r *Record) bool {
		return has(r, param, func(t store.Text) bool { return t.Original == text })
	}
}

// below returns a test that holds for a URI and for all URIs below it.
func below(param, uri string) test {
	return func(_ *World, r *Record) bool {
		return has(r, param, func(t store.Text) bool { return t.Original == uri || strings.HasPrefix(t.Original, uri+"/") })
	}
}

// above returns a test that holds for a URI and for all URIs above it.
func above(param, uri string) test {
	return func(_ *World, r *Record) bool {
		return has(r, param, func(t store.Text) bool { return t.Original == uri || strings.HasPrefix(uri, t.Original+"/") })
	}
}

// canonicalIs returns a test of canonical URLs, by the rules in
// docs/decisions/0013-canonical-search.md.
func canonicalIs(param, modifier, url, version string) test {
	return func(_ *World, r *Record) bool {
		return has(r, param, func(t store.Text) bool {
			is, of, _ := strings.Cut(t.Original, "|")
			switch {
			case version == "" && modifier == "below":
				return is == url || strings.HasPrefix(is, url+"/")
			case version == "" && modifier == "above":
				return is == url || strings.HasPrefix(url, is+"/")
			case version == "":
				return is == url
			case modifier == "below":
				return is == url && beginsWith(of, version)
			case modifier == "above":
				return is == url && of != "" && beginsWith(version, of)
			default:
				return is == url && of == version
			}
		})
	}
}

// beginsWith reports whether a version begins with the parts of another one. Parts are separated by
// dots.
func beginsWith(version, with string) bool {
	parts, first := strings.Split(version, "."), strings.Split(with, ".")
	return len(parts) >= len(first) && slices.Equal(parts[:len(first)], first)
}

// sounds returns a test that holds if, for each word, the record has at least one of the phonetic
// codes of the word.
func sounds(param string, words [][]string) test {
	return func(_ *World, r *Record) bool {
		for _, codes := range words {
			if !has(r, param, func(t store.Text) bool { return slices.Contains(codes, t.Original) }) {
				return false
			}
		}
		return true
	}
}

// dateIs reports whether the period [l, h) of a record matches the range [a, b) of a query with a
// prefix (R4 search.html#prefix).
func dateIs(prefix string, a, b, l, h int64) bool {
	eq := a <= l && h <= b
	switch prefix {
	case "ne":
		return !eq
	case "gt":
		return h > b
	case "lt":
		return l < a
	case "ge":
		return h > b || eq
	case "le":
		return l < a || eq
	case "sa":
		return l >= b
	case "eb":
		return h <= a
	default: // eq, ap
		return eq
	}
}

// A tick is 100 ns, the finest precision of times in queries here.
const ticksPerMicro = 10

func ticks(t time.Time) int64 { return t.UnixMicro()*ticksPerMicro + int64(t.Nanosecond()/100%10) }

// periodIs returns a test of periods. a and b are the bounds of the range in ticks.
func periodIs(param, prefix string, a, b int64) test {
	inTicks := func(micros int64) int64 {
		if micros == store.TheBeginning || micros == store.TheEnd {
			return micros
		}
		return micros * ticksPerMicro
	}
	return func(_ *World, r *Record) bool {
		return has(r, param, func(p store.Period) bool { return dateIs(prefix, a, b, inTicks(p.From), inTicks(p.Until)) })
	}
}

// updatedIs returns a test of _lastUpdated, which is an instant. a and b are the bounds of the range
// in ticks.
func updatedIs(prefix string, a, b int64) test {
	return func(_ *World, r *Record) bool {
		updated := r.Updated * ticksPerMicro
		inside := a <= updated && updated < b
		switch prefix {
		case "ne":
			return !inside
		case "gt", "sa":
			return updated >= b
		case "lt", "eb":
			return updated < a
		case "ge":
			return updated >= a
		case "le":
			return updated < b
		default: // eq, ap
			return inside
		}
	}
}

// refersTo returns a test that holds for references equal to the given one. References to a record of
// this site are equal with and without the site's address.
func refersTo(param string, to store.Reference) test {
	return func(w *World, r *Record) bool {
		name, local := w.local(to)
		return has(r, param, func(v store.Reference) bool {
			if other, ok := w.local(v); ok || local {
				return ok && local && name == other
			}
			return v == to
		})
	}
}

// refersToID returns a test that holds for references to a record of this site with the id and one of
// the types.
func refersToID(param string, types []string, id string) test {
	var tests []test
	for _, typ := range types {
		tests = append(tests, refersTo(param, store.Reference{Type: typ, ID: strings.ToLower(id)}))
	}
	return anyOf(tests)
}

// partOf returns the test of :below: it holds for records that are a part of a record, directly or
// through other records.
func partOf(param, typ, id string) test {
	return func(w *World, r *Record) bool { return reaches(w, r, param, typ+"/"+id) }
}

// reaches reports whether the references of a record lead to the record with a name, directly or
// through other records.
func reaches(w *World, r *Record, param, name string) bool {
	for seen := map[*Record]bool{}; r != nil && !seen[r]; {
		seen[r] = true
		next := (*Record)(nil)
		for _, value := range r.values[param] {
			if v, ok := value.(store.Reference); ok {
				if to, ok := w.local(v); ok {
					if to == name {
						return true
					}
					next = w.byName[to]
				}
			}
		}
		r = next
	}
	return false
}

// partOfAbove returns the test of :above. The test holds for records that are directly a part of the
// given record or of one of its ancestors. The ancestors of a record are the records that it is a part
// of, directly or through other records.
func partOfAbove(param, typ, id string) test {
	return func(w *World, r *Record) bool {
		return has(r, param, func(v store.Reference) bool {
			whole, ok := w.local(v)
			if !ok {
				return false
			}
			start := w.byName[typ+"/"+id]
			return whole == typ+"/"+id || start != nil && reaches(w, start, param, whole)
		})
	}
}

// chain returns a test that holds if a reference leads to a record of the type for which inner holds.
func chain(param, typ string, inner test) test {
	return func(w *World, r *Record) bool {
		return slices.ContainsFunc(w.referredBy(r, param), func(to *Record) bool { return to.Type == typ && inner(w, to) })
	}
}

// reverse returns a test that holds if a record of the type for which inner holds refers to the tested
// record.
func reverse(typ, param string, inner test) test {
	return func(w *World, r *Record) bool {
		return slices.ContainsFunc(w.Records, func(from *Record) bool {
			return from.Type == typ && slices.Contains(w.referredBy(from, param), r) && inner(w, from)
		})
	}
}

func pairIs(param string, first, second [2]*string) test {
	return func(_ *World, r *Record) bool {
		return has(r, param, func(p store.Pair) bool {
			return tokenMatches(p.First, first[0], first[1]) && tokenMatches(p.Second, second[0], second[1])
		})
	}
}

// meters returns the distance of two points on a globe: the angle between their directions, times the
// radius.
func meters(a, b store.Point) float64 {
	x, y := direction(a), direction(b)
	cross := [3]float64{x[1]*y[2] - x[2]*y[1], x[2]*y[0] - x[0]*y[2], x[0]*y[1] - x[1]*y[0]}
	length := math.Sqrt(cross[0]*cross[0] + cross[1]*cross[1] + cross[2]*cross[2])
	return 6371008.8 * math.Atan2(length, x[0]*y[0]+x[1]*y[1]+x[2]*y[2])
}

func direction(p store.Point) [3]float64 {
	lat, lon := p.Latitude*math.Pi/180, p.Longitude*math.Pi/180
	return [3]float64{math.Cos(lat) * math.Cos(lon), math.Cos(lat) * math.Sin(lon), math.Sin(lat)}
}

func near(param string, center store.Point, most float64) test {
	return func(_ *World, r *Record) bool {
		return has(r, param, func(p store.Point) bool { return meters(center, p) <= most })
	}
}
