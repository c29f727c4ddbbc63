package postgres

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/store"
)

// group is alternatives of one kind and one parameter, written as one condition with arrays:
// a statement with a thousand conditions takes seconds to plan.
type group struct {
	kind  groupKind
	param string
	is    []store.Condition
}

type groupKind int

const (
	alone groupKind = iota
	// codes have no system, tokens have one too.
	codes
	tokens
	// prefixes are the beginnings of folded texts.
	prefixes
	// targets are records of this site.
	targets
)

// kindOf is the kind of group that a condition may be in.
func (c *compiler) kindOf(condition store.Condition) (kind groupKind, param string) {
	switch condition := condition.(type) {
	case store.TokenIs:
		switch {
		case condition.Code == nil:
			return alone, ""
		case condition.System == nil:
			return codes, condition.Param
		default:
			return tokens, condition.Param
		}
	case store.TextIs:
		if condition.Match == store.StartsWith && len(condition.Text) <= longestValue && after([]byte(condition.Text)) != nil {
			return prefixes, condition.Param
		}
	case store.RefersTo:
		if _, base := c.site.hash.target(condition.To); condition.To.Type != "" && slices.Contains(c.local, base) {
			return targets, condition.Param
		}
	}
	return alone, ""
}

// grouped puts alternatives together, from two of a kind on.
func (c *compiler) grouped(alternatives store.Any) (groups []group, rest []store.Condition) {
	type name struct {
		kind  groupKind
		param string
	}
	index := map[name]int{}
	var all []group
	for _, condition := range alternatives {
		kind, param := c.kindOf(condition)
		if kind == alone {
			rest = append(rest, condition)
			continue
		}
		at, known := index[name{kind, param}]
		if !known {
			at = len(all)
			index[name{kind, param}] = at
			all = append(all, group{kind: kind, param: param})
		}
		all[at].is = append(all[at].is, condition)
	}
	for _, g := range all {
		if len(g.is) == 1 {
			rest = append(rest, g.is[0])
		} else {
			groups = append(groups, g)
		}
	}
	return groups, rest
}

// rank is that of the list.
func (g group) rank(c *compiler) int {
	switch {
	case g.kind == prefixes:
		return rankText
	case g.kind == targets:
		return rankReference
	case c.site.index.facet(g.param):
		return rankFacet
	default:
		return rankToken
	}
}

// listed are the rows of an index table, named x, that any of the alternatives takes.
func (g group) listed(c *compiler, typeName string) string {
	if g.kind == targets {
		return "ix_ref x WHERE " + g.references(c, typeName)
	}
	own := " WHERE x.site = $1 AND x.key = " + c.key(typeName, g.param)
	if g.kind == prefixes {
		return g.bounds(c) + ", ix_str x" + own + " AND x.val >= w.least AND x.val < w.beyond"
	}
	from, where := g.tokens(c)
	return from + own + where
}

// tested are those of one record.
func (g group) tested(c *compiler, n node) string {
	if g.kind == prefixes {
		// The few texts of the record are compared with all alternatives.
		return "ix_str x WHERE x.site = $1 AND x.key = " + c.key(n.typ, g.param) + " AND x.rid = " + n.rid + " AND " +
			found(g.bounds(c)+" WHERE x.val >= w.least AND x.val < w.beyond")
	}
	return g.listed(c, n.typ) + " AND x.rid = " + n.rid
}

func (g group) tokens(c *compiler) (from, where string) {
	codeHashes, systems := make([]int64, len(g.is)), make([]int64, len(g.is))
	for i, condition := range g.is {
		is := condition.(store.TokenIs)
		codeHashes[i] = c.site.hash.code(*is.Code)
		if g.kind == tokens {
			systems[i] = c.site.hash.system(*is.System)
		}
	}
	if g.kind == codes {
		return "unnest(" + c.arg(codeHashes) + "::int8[]) w(code), ix_tok x", " AND x.code = w.code"
	}
	return "unnest(" + c.arg(codeHashes) + "::int8[], " + c.arg(systems) + "::int8[]) w(code, sys), ix_tok x", " AND x.code = w.code AND x.sys = w.sys"
}

// bounds is the table of the ranges, named w, that texts with the prefixes are in.
func (g group) bounds(c *compiler) string {
	least, beyond := make([][]byte, len(g.is)), make([][]byte, len(g.is))
	for i, condition := range g.is {
		least[i] = []byte(condition.(store.TextIs).Text)
		beyond[i] = after(least[i])
	}
	return "unnest(" + c.arg(least) + "::bytea[], " + c.arg(beyond) + "::bytea[]) w(least, beyond)"
}

func (g group) references(c *compiler, typeName string) string {
	to := make([]store.Reference, len(g.is))
	for i, condition := range g.is {
		to[i] = condition.(store.RefersTo).To
	}
	return c.references(typeName, g.param, to...)
}

// mostConditions bounds the text of a statement.
const mostConditions = 5000

// sizeOf counts the conditions of a query.
func (c *compiler) sizeOf(condition store.Condition) int {
	size := 1
	var parts []store.Condition
	switch condition := condition.(type) {
	case store.All:
		parts = condition
	case store.Any:
		groups, rest := c.grouped(condition) // those of a group are one
		size, parts = size+len(groups), rest
	case store.SinglePeriodIn:
		size = len(condition.Areas)
	case store.Not:
		parts = []store.Condition{condition.Condition}
	case store.Chain:
		parts = []store.Condition{condition.Where}
	case store.ReferredBy:
		parts = []store.Condition{condition.Where}
	}
	for _, part := range parts {
		size += c.sizeOf(part)
	}
	return size
}
