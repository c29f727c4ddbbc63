package randomsearch

import (
	"maps"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/hack/test/searchtruth"
)

// inCompartment returns a test that holds for the records in the compartment of a record. of and id
// are the type and id of that record.
func (w *World) inCompartment(of, id string) test {
	id = strings.ToLower(id)
	members := w.compartments[of]
	return func(w *World, r *Record) bool {
		return slices.ContainsFunc(members[r.Type], func(param string) bool {
			if param == searchtruth.Self {
				return r.Type == of && r.ID == id
			}
			return refersTo(param, store.Reference{Type: of, ID: id})(w, r)
		})
	}
}

// compartment makes the query a search in a compartment: for one type, some types or all types in it.
// The caller sees at least one of them. It returns the types that must have the parameters of the
// query, or nil, and an unchanged query, if the caller sees no type of the compartment.
func (g *generator) compartment(q *Query, seen []string) (types []string) {
	of := pick(g.Rand, slices.Sorted(maps.Keys(g.world.compartments)))
	all := slices.Sorted(maps.Keys(g.world.compartments[of]))
	visible := slices.DeleteFunc(slices.Clone(all), func(typ string) bool { return !slices.Contains(seen, typ) })
	if len(visible) == 0 {
		return nil
	}
	id := g.idOf(of)
	q.Within = of + "/" + id + "/"
	q.Filters = append(q.Filters, Filter{Name: compartmentForm, Holds: g.world.inCompartment(of, id)})
	if g.chance(50) {
		q.Types = []string{pick(g.Rand, visible)}
		q.Within += q.Types[0]
		return q.Types
	}
	q.Within += "*"
	if q.Types = visible; g.chance(70) {
		return all
	}
	g.Shuffle(len(visible), func(i, j int) { visible[i], visible[j] = visible[j], visible[i] })
	q.Types = visible[:1+g.IntN(len(visible))]
	q.Written.Set("_type", strings.Join(q.Types, ","))
	return q.Types
}

// compartmentForm is the name of the filter that stands for a compartment.
const compartmentForm = "compartment"
