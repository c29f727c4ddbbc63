package randomsearch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// targets returns the types to which a parameter of any of the given types refers.
func (g *generator) targets(types []string, name string) []string {
	if name == "patient" {
		return []string{"Patient"}
	}
	var all []string
	for _, typ := range types {
		all = append(all, g.world.parameters[typ][name].Targets...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// refers makes a filter of a reference parameter.
func (g *generator) refers(types []string, name string) Filter {
	targets := g.targets(types, name)
	kept := g.world.kept(targets)
	hierarchy := name == "partof" || name == "parent" && types[0] == "DeviceDefinition"
	switch {
	case hierarchy && len(types) == 1 && g.chance(50):
		return g.hierarchy(types[0], name)
	case g.chance(15):
		return g.alternatives(name, "identifier", func() (string, test) {
			written, system, code := g.tokenValue(types, name+":identifier")
			return written, tokenIs(name+":identifier", system, code)
		})
	case g.chance(20):
		typ := pick(g.Rand, kept)
		return g.alternatives(name, typ, func() (string, test) {
			id := g.idOf(typ)
			return id, refersToID(name, []string{typ}, id)
		})
	}
	return g.alternatives(name, "", func() (string, test) { return g.referenceValue(types, name, targets) })
}

// idOf returns the id of a random record of a type, with some letters in the other case. Sometimes it
// returns an id that no record has.
func (g *generator) idOf(typ string) string {
	var ids []string
	for _, r := range g.world.Records {
		if r.Type == typ {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 || g.chance(5) {
		return "gone"
	}
	return g.flipped(pick(g.Rand, ids))
}

// referenceValue chooses a reference and the form to write it in.
func (g *generator) referenceValue(types []string, name string, targets []string) (string, test) {
	to, ok := sample[store.Reference](g, types, name)
	if !ok || g.chance(20) || to.Type != "" && !slices.Contains(targets, to.Type) {
		typ := pick(g.Rand, g.world.kept(targets))
		to = store.Reference{Type: typ, ID: strings.ToLower(g.idOf(typ))}
	}
	if to.Type == "" {
		return escapes.Replace(to.Base), refersTo(name, to)
	}
	relative := to.Type + "/" + g.flipped(to.ID)
	switch {
	case to.Base != "":
		return to.Base + "/" + to.Type + "/" + to.ID, refersTo(name, to)
	case g.chance(30):
		return g.world.base + "/" + relative, refersTo(name, to)
	case g.chance(70):
		g.refusals = append(g.refusals, func(w *World) bool {
			return slices.ContainsFunc(types, func(typ string) bool { return w.ambiguous(typ, name, targets, to.ID) })
		})
		return g.flipped(to.ID), refersToID(name, targets, to.ID)
	}
	return relative, refersTo(name, to)
}

// ambiguous reports whether records of a type refer to the id with several of the target types. A
// server must then refuse a query by the id alone, because the query does not say which type it means.
func (w *World) ambiguous(typ, param string, targets []string, id string) bool {
	found := map[string]bool{}
	for _, r := range w.Records {
		for _, target := range targets {
			if r.Type == typ && refersTo(param, store.Reference{Type: target, ID: id})(w, r) {
				found[target] = true
			}
		}
	}
	return len(found) > 1
}

// hierarchy makes a filter with :above or :below.
func (g *generator) hierarchy(typ, name string) Filter {
	modifier, compare := "below", partOf
	if g.chance(50) {
		modifier, compare = "above", partOfAbove
	}
	return g.alternatives(name, modifier, func() (string, test) {
		id := g.idOf(typ)
		written := id
		if g.chance(50) {
			written = typ + "/" + id
		}
		return written, compare(name, typ, strings.ToLower(id))
	})
}

// chain makes a filter by the records that a match refers to. It reports false if the chain would name
// no type and its inner parameter does not mean the same for all possible types.
func (g *generator) chain(types []string, name string, depth int) (Filter, bool) {
	targets := g.world.kept(g.targets(types, name))
	typ, refusals := pick(g.Rand, targets), len(g.refusals)
	inner := g.filter([]string{typ}, depth+1)
	if g.chance(50) || len(targets) == 1 {
		if g.chance(70) || len(targets) > 1 {
			return Filter{name + ":" + typ + "." + inner.Name, inner.Value, chain(name, typ, inner.Holds)}, true
		}
		return Filter{name + "." + inner.Name, inner.Value, chain(name, typ, inner.Holds)}, true
	}
	having, ok := g.having(targets, inner.Name)
	if !ok {
		g.refusals = g.refusals[:refusals]
	}
	var tests []test
	for _, target := range having {
		tests = append(tests, chain(name, target, inner.Holds))
	}
	return Filter{name + "." + inner.Name, inner.Value, anyOf(tests)}, ok
}

// having returns those of the types that have the parameter of a filter. A chain that names no type
// means these types. ok is false if no type has the parameter, if it means different things for the
// types, or if the filter is a chain or has another modifier than those listed here.
func (g *generator) having(types []string, filter string) (having []string, ok bool) {
	param, modifier, _ := strings.Cut(filter, ":")
	if !slices.Contains([]string{"", "not", "missing", "contains", "exact"}, modifier) || strings.Contains(filter, ".") {
		return nil, false
	}
	if slices.Contains([]string{"_id", "_lastUpdated", "telecom"}, param) {
		return types, true
	}
	kind := ""
	for _, typ := range types {
		p, has := g.world.parameters[typ][param]
		if !has {
			continue
		}
		if !slices.Contains([]string{"token", "string", "date", "uri"}, p.Kind) || kind != "" && kind != p.Kind {
			return nil, false
		}
		kind, having = p.Kind, append(having, typ)
	}
	return having, len(having) > 0
}

// has makes a filter (_has) by the records that refer to a match. It reports false if no parameter was
// found.
func (g *generator) has(types []string, depth int) (Filter, bool) {
	typ, param := g.reference(types, true)
	// The parameter that was chosen may not refer to any of the types.
	if !slices.ContainsFunc(types, func(t string) bool { return slices.Contains(g.targets([]string{typ}, param), t) }) {
		return Filter{}, false
	}
	inner := g.filter([]string{typ}, depth+1)
	name := fmt.Sprintf("_has:%s:%s:%s", typ, param, inner.Name)
	if depth == 0 && g.chance(30) {
		return Filter{"_has", strings.TrimPrefix(name, "_has:") + "=" + inner.Value, reverse(typ, param, inner.Holds)}, true
	}
	return Filter{name, inner.Value, reverse(typ, param, inner.Holds)}, true
}
