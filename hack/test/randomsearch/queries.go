package randomsearch

import (
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

// Query is a random query, both as it is written and as the conditions that it means.
type Query struct {
	// Types are the types to search, which the path or _type names. Everywhere reports whether the
	// query names no type; then Types are those that the caller sees.
	Types      []string
	Everywhere bool
	// Within is the path of a search in a compartment, and empty for other searches.
	Within   string
	Filters  []Filter
	Sort     []SortKey
	Includes []Include
	// Range is the name of the parameter for which the query has a range with two ends. It is empty if
	// there is no such range.
	Range string
	// Count is the number of matches on a page: _count, or 20 without it.
	Count int
	// Total is the value of _total. It is empty if the query has none.
	Total string
	// Refused reports whether the query must be refused as ambiguous.
	Refused func(*World) bool
	// Written has the parameters of the query as they are sent.
	Written url.Values
}

// generator makes queries about a world.
type generator struct {
	*rand.Rand
	world *World
	now   time.Time
	// sounds has the phonetic codes of words.
	sounds map[string][]string
	// values has the values of the records of the world, by type and parameter.
	values map[string]map[string][]store.Value
	// refusals are conditions on the world. The query that is being made must be refused if one of
	// them holds.
	refusals []func(*World) bool
}

func newGenerator(seed uint64, w *World, sounds map[string][]string, now time.Time) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7)), world: w, now: now, sounds: sounds, values: map[string]map[string][]store.Value{}}
	for typ := range w.parameters {
		g.values[typ] = map[string][]store.Value{}
	}
	for _, r := range w.Records {
		for param, values := range r.values {
			g.values[r.Type][param] = append(g.values[r.Type][param], values...)
		}
	}
	return g
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// sample returns a random value, of type V, of a parameter in records of the types. It reports false
// if there is none.
func sample[V store.Value](g *generator, types []string, param string) (V, bool) {
	var all []V
	for _, typ := range types {
		for _, value := range g.values[typ][param] {
			if v, ok := value.(V); ok {
				all = append(all, v)
			}
		}
	}
	if len(all) == 0 {
		var none V
		return none, false
	}
	return pick(g.Rand, all), true
}

// query makes a query for one type, or for several that the caller sees.
func (g *generator) query(seen []string) Query {
	g.refusals = nil
	q := Query{Types: []string{pick(g.Rand, seen)}, Count: 20, Written: url.Values{}}
	everywhere := g.chance(3)
	switch {
	case everywhere: // the parameters of such a query must be parameters of all types
		q.Types = searchtruth.Kept
	case g.chance(6):
		q.Types = slices.Clone(seen)
		g.Shuffle(len(q.Types), func(i, j int) { q.Types[i], q.Types[j] = q.Types[j], q.Types[i] })
		q.Types = q.Types[:1+g.IntN(len(q.Types))]
		q.Written.Set("_type", strings.Join(q.Types, ","))
	}
	searched := q.Types
	if !everywhere && q.Written.Get("_type") == "" && g.chance(12) {
		if types := g.compartment(&q, seen); types != nil {
			searched, q.Types = q.Types, types
		}
	}
	for range pick(g.Rand, []int{0, 1, 1, 1, 2, 2, 2, 3}) {
		q.Filters = append(q.Filters, g.filter(q.Types, 0))
	}
	if g.chance(10) {
		q.Filters = append(q.Filters[:min(len(q.Filters), 1)], g.ends(q.Types)...)
		q.Range = q.Filters[len(q.Filters)-1].Name
	}
	for _, f := range q.Filters {
		q.Written.Add(f.Name, f.Value)
	}
	g.page(&q)
	g.sort(&q)
	if g.chance(25) {
		g.includes(&q)
	}
	switch {
	case everywhere:
		q.Types, q.Everywhere = seen, true
	case q.Within != "":
		q.Types = searched
	}
	refusals := g.refusals
	q.Refused = func(w *World) bool {
		return slices.ContainsFunc(refusals, func(holds func(*World) bool) bool { return holds(w) })
	}
	return q
}

// page chooses _count and _total, each at random and sometimes none.
func (g *generator) page(q *Query) {
	if g.chance(85) {
		q.Count = pick(g.Rand, []int{0, 1, 2, 3, 3, 5, 7, 10, 20, 50, 1000})
		q.Written.Set("_count", strconv.Itoa(q.Count))
	}
	if g.chance(20) {
		q.Total = pick(g.Rand, []string{"none", "estimate", "accurate"})
		q.Written.Set("_total", q.Total)
	}
}

// sort chooses an order, or none. It uses only parameters that all types of the query have.
func (g *generator) sort(q *Query) {
	if g.chance(45) {
		return
	}
	names := []string{"_id", "_lastUpdated"}
	for _, name := range g.common(q.Types) {
		if kind := g.world.parameters[q.Types[0]][name].Kind; kind == "string" || kind == "date" {
			names = append(names, name, name)
		}
	}
	var written []string
	for n := range 1 + g.IntN(3) {
		key := SortKey{pick(g.Rand, names), g.chance(50)}
		if n == 0 && q.Range != "" && g.chance(70) {
			key.Name = q.Range
		}
		if slices.ContainsFunc(q.Sort, func(k SortKey) bool { return k.Name == key.Name }) {
			continue
		}
		q.Sort = append(q.Sort, key)
		written = append(written, map[bool]string{true: "-"}[key.Descending]+key.Name)
	}
	q.Written.Set("_sort", strings.Join(written, ","))
}

// includes adds one to three includes.
func (g *generator) includes(q *Query) {
	for range 1 + g.IntN(3) {
		include := Include{Reverse: g.chance(50), Iterate: g.chance(30)}
		written := "*"
		if !g.chance(10) {
			include.Type, include.Param = g.reference(q.Types, include.Reverse)
			written = include.Type + ":" + include.Param
			targets := g.world.kept(g.world.parameters[include.Type][include.Param].Targets)
			switch {
			case g.chance(15):
				include.Param, written = "", include.Type+":*"
			case g.chance(20) && len(targets) > 0:
				include.Target = pick(g.Rand, targets)
				written += ":" + include.Target
			}
		}
		name := map[bool]string{false: "_include", true: "_revinclude"}[include.Reverse]
		if include.Iterate {
			name += ":iterate"
		}
		q.Includes = append(q.Includes, include)
		q.Written.Add(name, written)
	}
}

// reference chooses a parameter with references: nearly always one of the types, or, if reverse is
// set, one whose references may be to the types.
func (g *generator) reference(types []string, reverse bool) (typ, param string) {
	for range 50 {
		typ = pick(g.Rand, slices.Sorted(maps.Keys(g.world.parameters)))
		names := g.world.references(typ)
		if len(names) == 0 {
			continue
		}
		param = pick(g.Rand, names)
		fits := slices.Contains(types, typ)
		if reverse {
			targets := g.world.parameters[typ][param].Targets
			fits = slices.ContainsFunc(targets, func(t string) bool { return slices.Contains(types, t) })
		}
		if fits || g.chance(2) {
			return typ, param
		}
	}
	return "Patient", "organization"
}

// kept returns those of the types that the server keeps.
func (w *World) kept(types []string) []string {
	return slices.DeleteFunc(slices.Clone(types), func(typ string) bool { return w.parameters[typ] == nil })
}

// common returns the names of the parameters that all types have with the same kind, sorted.
func (g *generator) common(types []string) []string {
	var names []string
	for name, p := range g.world.parameters[types[0]] {
		if !slices.ContainsFunc(types, func(typ string) bool { return g.world.parameters[typ][name].Kind != p.Kind }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
