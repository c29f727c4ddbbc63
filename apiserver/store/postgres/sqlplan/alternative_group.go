package sqlplan

import (
	"slices"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// alternativeGroup is a group of alternatives of a store.Any that have the same kind and parameter.
// The group becomes one SQL condition with arrays, because Postgres takes seconds to plan a statement
// with a thousand conditions.
type alternativeGroup struct {
	kind       groupKind
	param      string
	conditions []store.Condition
}

type groupKind int

const (
	ungrouped groupKind = iota
	// codes are conditions on tokens by code only. tokens are conditions by code and system.
	codes
	tokens
	// commonCodes are conditions on common codes, by code only or by code and system.
	commonCodes
	// prefixes are conditions on prefixes of folded texts.
	prefixes
	// targets are conditions on references to records of this site.
	targets
)

// kindOf returns the kind and the parameter of the group to which a condition can belong. The kind
// is ungrouped if it can belong to none.
func (c *compiler) kindOf(typeName string, condition store.Condition) (kind groupKind, param string) {
	switch condition := condition.(type) {
	case store.TokenIs:
		switch {
		case condition.Code == nil:
			return ungrouped, ""
		case c.commonBit(typeName, condition) != 0:
			return commonCodes, condition.Param
		case condition.System == nil:
			return codes, condition.Param
		default:
			return tokens, condition.Param
		}
	case store.TextIs:
		if condition.Match == store.StartsWith && len(condition.Text) <= indexrow.MaxIndexedBytes && prefixEnd([]byte(condition.Text)) != nil {
			return prefixes, condition.Param
		}
	case store.RefersTo:
		if _, base := c.index.Hash.Target(condition.To); condition.To.Type != "" && slices.Contains(c.local, base) {
			return targets, condition.Param
		}
	}
	return ungrouped, ""
}

// grouped returns the groups of two or more alternatives of the same kind and parameter, and the
// rest of the alternatives.
func (c *compiler) grouped(typeName string, alternatives store.Any) (groups []alternativeGroup, rest []store.Condition) {
	type name struct {
		kind  groupKind
		param string
	}
	index := map[name]int{}
	var all []alternativeGroup
	for _, condition := range alternatives {
		kind, param := c.kindOf(typeName, condition)
		if kind == ungrouped {
			rest = append(rest, condition)
			continue
		}
		at, known := index[name{kind, param}]
		if !known {
			at = len(all)
			index[name{kind, param}] = at
			all = append(all, alternativeGroup{kind: kind, param: param})
		}
		all[at].conditions = append(all[at].conditions, condition)
	}
	for _, g := range all {
		if len(g.conditions) == 1 {
			rest = append(rest, g.conditions[0])
		} else {
			groups = append(groups, g)
		}
	}
	return groups, rest
}

func (g alternativeGroup) sizeClass(c *compiler) int {
	switch {
	case g.kind == prefixes:
		return classText
	case g.kind == targets:
		return classReference
	case c.index.Extractor.IsFacet(g.param):
		return classFacet
	default:
		return classToken
	}
}

// rowsOfAny returns the SQL to write after FROM, with a WHERE clause, for the index rows, named x,
// that meet one of the alternatives.
func (g alternativeGroup) rowsOfAny(c *compiler, typeName string) string {
	if g.kind == targets {
		return "ix_ref x WHERE " + g.references(c, typeName)
	}
	if g.kind == prefixes && !c.earlier.WideTexts {
		return g.bounds(c) + ", ix_text x WHERE x.site = $1 AND " + c.anyTextKey(typeName, g.param) + " AND x.val >= w.least AND x.val < w.beyond"
	}
	if g.kind == commonCodes {
		return c.rowsOfCommonCodes(typeName, g.tokenConditions())
	}
	if g.kind == prefixes {
		return g.bounds(c) + ", ix_str x WHERE x.site = $1 AND x.key = " + c.key(typeName, g.param) + " AND x.val >= w.least AND x.val < w.beyond"
	}
	from, where := g.tokens(c)
	return from + " WHERE x.site = $1 AND " + c.equals("x.key", c.tokenKeys(typeName, g.param)) + where
}

// test returns the test whether a candidate meets one of the alternatives.
func (g alternativeGroup) test(c *compiler, n candidate) string {
	if g.kind == prefixes && !c.earlier.WideTexts {
		texts := make([]string, len(g.conditions))
		for i, condition := range g.conditions {
			texts[i] = condition.(store.TextIs).Text
		}
		return c.hasTextPrefix(n, g.param, texts)
	}
	if g.kind == commonCodes {
		return n.column("marks") + " && " + c.Arg(c.facetMarks(n.typ, g.tokenConditions())) + "::int8[]"
	}
	return exists(g.rowsOfCandidate(c, n))
}

func (g alternativeGroup) tokenConditions() []store.TokenIs {
	all := make([]store.TokenIs, len(g.conditions))
	for i, condition := range g.conditions {
		all[i] = condition.(store.TokenIs)
	}
	return all
}

// rowsOfCandidate is like rowsOfAny, but selects only the index rows of one candidate.
func (g alternativeGroup) rowsOfCandidate(c *compiler, n candidate) string {
	if g.kind == prefixes {
		// A record has few texts, so each is compared with all alternatives.
		return "ix_str x WHERE x.site = $1 AND x.key = " + c.key(n.typ, g.param) + " AND x.rid = " + n.rid + " AND " +
			exists(g.bounds(c)+" WHERE x.val >= w.least AND x.val < w.beyond")
	}
	return g.rowsOfAny(c, n.typ) + " AND x.rid = " + n.rid
}

func (g alternativeGroup) tokens(c *compiler) (from, where string) {
	codeHashes, systems := make([]int64, len(g.conditions)), make([]int64, len(g.conditions))
	for i, is := range g.tokenConditions() {
		codeHashes[i] = c.index.Hash.Code(*is.Code)
		if g.kind == tokens {
			systems[i] = c.index.Hash.System(*is.System)
		}
	}
	if g.kind == codes {
		return "unnest(" + c.Arg(codeHashes) + "::int8[]) w(code), " + c.earlier.Tokens() + " x", " AND x.code = w.code"
	}
	return "unnest(" + c.Arg(codeHashes) + "::int8[], " + c.Arg(systems) + "::int8[]) w(code, sys), " + c.earlier.Tokens() + " x", " AND x.code = w.code AND x.sys = w.sys"
}

// bounds returns the SQL of a table, named w, of the value ranges of the prefixes.
func (g alternativeGroup) bounds(c *compiler) string {
	least, beyond := make([][]byte, len(g.conditions)), make([][]byte, len(g.conditions))
	for i, condition := range g.conditions {
		least[i] = []byte(condition.(store.TextIs).Text)
		beyond[i] = prefixEnd(least[i])
	}
	return "unnest(" + c.Arg(least) + "::bytea[], " + c.Arg(beyond) + "::bytea[]) w(least, beyond)"
}

func (g alternativeGroup) references(c *compiler, typeName string) string {
	to := make([]store.Reference, len(g.conditions))
	for i, condition := range g.conditions {
		to[i] = condition.(store.RefersTo).To
	}
	return c.references(typeName, g.param, to...)
}

// MaxConditions is the maximum number of conditions of a query for each type. Alternatives that
// form a group count as one condition. The maximum limits the length of the statement. Store.Search
// of package postgres returns *store.TooManyConditionsError for a query with more conditions.
const MaxConditions = 5000

func (c *compiler) countConditions(typeName string, condition store.Condition) int {
	count := 1
	var parts []store.Condition
	switch condition := condition.(type) {
	case store.All:
		parts = condition
	case store.Any:
		groups, rest := c.grouped(typeName, condition) // a group counts as one
		count, parts = count+len(groups), rest
	case store.SinglePeriodIn:
		count = len(condition.Areas)
	case store.Not:
		parts = []store.Condition{condition.Condition}
	case store.Chain:
		typeName, parts = condition.Type, []store.Condition{condition.Where}
	case store.ReferredBy:
		typeName, parts = condition.Type, []store.Condition{condition.Where}
	}
	for _, part := range parts {
		count += c.countConditions(typeName, part)
	}
	return count
}
