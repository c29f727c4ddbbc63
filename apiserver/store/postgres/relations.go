package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
)

// answers are what a query's statements ask the database beforehand.
type answers struct {
	// types are those that an id alone may refer to, by condition.
	types map[string][]string
}

// refersTo are the rows of ix_ref, named x, that a condition takes.
func (c *compiler) refersTo(typeName string, condition store.RefersTo) string {
	return c.references(typeName, condition.Param, condition.To)
}

func (c *compiler) references(typeName, param string, to ...store.Reference) string {
	targets := make([]int64, len(to))
	local := true
	var base int64
	for i, reference := range to {
		targets[i], base = c.site.hash.target(reference)
		local = local && reference.Type != "" && (base == 0 || slices.Contains(c.local, base))
	}
	where := "x.site = $1 AND " + c.equals("x.tgt", targets) + " AND x.key = " + c.key(typeName, param)
	if local {
		return where + " AND x.base = ANY(" + c.bases() + ")"
	}
	return where + " AND x.base = " + c.arg(base)
}

// refersToID finds the references with an id, and refuses when they are to records of
// several types.
func (c *compiler) refersToID(n node, condition store.RefersToID) (string, error) {
	to, err := c.targetsOf(n.typ, condition)
	if err != nil || len(to) == 0 {
		return never, err
	}
	return found("ix_ref x WHERE " + c.references(n.typ, condition.Param, to...) + " AND x.rid = " + n.rid), nil
}

// targetsOf are what an id alone may refer to.
func (c *compiler) targetsOf(typeName string, condition store.RefersToID) ([]store.Reference, error) {
	name := fmt.Sprintf("%s %t %q", typeName, c.access == nil, condition)
	types, known := c.known.types[name]
	if !known {
		var err error
		if types, err = c.resolve(typeName, condition); err != nil {
			return nil, err
		}
		if c.known.types == nil {
			c.known.types = map[string][]string{}
		}
		c.known.types[name] = types
	}
	to := make([]store.Reference, len(types))
	for i, target := range types {
		to[i] = store.Reference{Type: target, ID: foldID(condition.ID)}
	}
	return to, nil
}

// resolve finds out which types an id refers to, where it could be several.
func (c *compiler) resolve(typeName string, condition store.RefersToID) ([]string, error) {
	types := slices.Clone(condition.Types)
	if len(types) == 0 {
		for _, p := range c.paths {
			if p.typ == typeName && p.param == condition.Param {
				types = append(types, p.target)
			}
		}
	}
	if len(types) < 2 {
		return types, nil
	}
	ask := &compiler{statement: c.site.statement(), ctx: c.ctx, site: c.site, access: c.access, local: c.local, paths: c.paths, known: c.known}
	targets := make([]int64, len(types))
	for i, target := range types {
		targets[i] = c.site.hash.self(target, condition.ID)
	}
	visible, err := ask.restricted(inner(typeName, "r"), nil)
	if err != nil {
		return nil, err
	}
	sql := "SELECT u.n FROM unnest(" + ask.arg(targets) + "::int8[]) WITH ORDINALITY u(tgt, n) WHERE " + found("ix_ref x JOIN res r ON r.site = $1 AND r.typ = "+
		ask.arg(typeName)+" AND r.rid = x.rid WHERE x.site = $1 AND x.tgt = u.tgt AND x.key = "+ask.key(typeName, condition.Param)+
		" AND x.base = ANY("+ask.bases()+") AND "+visible) + " ORDER BY u.n"
	found, err := c.site.pool.Query(c.ctx, ask.sql(sql), ask.args...)
	if err != nil {
		return nil, err
	}
	numbers, err := pgx.CollectRows(found, pgx.RowTo[int64])
	if err != nil {
		return nil, err
	}
	met := make([]string, len(numbers))
	for i, n := range numbers {
		met[i] = types[n-1]
	}
	if len(met) > 1 {
		return nil, &store.AmbiguousError{Param: condition.Param, ID: condition.ID, Types: met}
	}
	return met, nil
}

// paramKeys compares the column of keys with those of a parameter of a type or, where that
// is empty, of all that refer.
func (c *compiler) paramKeys(column, typeName, param string) string {
	if param != "" {
		return column + " = " + c.key(typeName, param)
	}
	return column + " = ANY(" + c.arg(c.site.hash.keysOf(c.paths, func(p path) bool { return p.typ == typeName })) + "::int8[])"
}

// keysOf are the keys of some paths, each once.
func (h hasher) keysOf(paths []path, wanted func(path) bool) []int64 {
	keys := []int64{}
	for _, p := range paths {
		if key := h.param(p.typ, p.param); wanted(p) && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// chain follows a node's references to the records that meet a condition.
func (c *compiler) chain(n node, condition store.Chain) (string, error) {
	f, t := c.name("f"), c.name("t")
	where, err := c.restricted(inner(condition.Type, t), condition.Where)
	if err != nil {
		return "", err
	}
	return found("ix_ref " + f + " CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.self = " + f + ".tgt AND x.typ = " +
		c.arg(condition.Type) + " LIMIT 1) " + t + " WHERE " + f + ".site = $1 AND " + f + ".rid = " + n.rid + " AND " +
		c.paramKeys(f+".key", n.typ, condition.Param) + " AND " + f + ".base = ANY(" + c.bases() + ") AND " + where), nil
}

// referredBy looks at the records that refer to a node.
func (c *compiler) referredBy(n node, condition store.ReferredBy) (string, error) {
	f, t := c.name("f"), c.name("t")
	where, err := c.restricted(inner(condition.Type, t), condition.Where)
	if err != nil {
		return "", err
	}
	return found("ix_ref " + f + " CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.typ = " + c.arg(condition.Type) +
		" AND x.rid = " + f + ".rid LIMIT 1) " + t + " WHERE " + f + ".site = $1 AND " + f + ".tgt = " + n.column("self") + " AND " +
		c.paramKeys(f+".key", condition.Type, condition.Param) + " AND " + f + ".base = ANY(" + c.bases() + ") AND " + where), nil
}

// refersAround finds the references into a hierarchy.
func (c *compiler) refersAround(n node, condition store.RefersAround) (string, error) {
	members, err := c.around(n.typ, condition)
	if err != nil {
		return "", err
	}
	if members == "" {
		return c.own(n, store.RefersTo{Param: condition.Param, To: condition.To}), nil
	}
	return found("ix_ref x WHERE x.site = $1 AND x.rid = " + n.rid + " AND x.key = " + c.key(n.typ, condition.Param) +
		" AND x.base = ANY(" + c.bases() + ") AND x.tgt IN (SELECT tgt FROM " + members + ")"), nil
}

// around walks a hierarchy over the records that may be met, and names the table of what it
// finds; no name when the hierarchy is not of this site.
func (c *compiler) around(typeName string, condition store.RefersAround) (string, error) {
	root, base := c.site.hash.target(condition.To)
	if condition.To.Type == "" || !slices.Contains(c.local, base) {
		return "", nil
	}
	members, t := c.name("m"), c.name("t")
	visible, err := c.restricted(inner(typeName, t), nil)
	if err != nil {
		return "", err
	}
	key, typ := c.key(typeName, condition.Param), c.arg(typeName)
	step := "SELECT " + t + ".self FROM " + members + " m JOIN ix_ref f ON f.site = $1 AND f.tgt = m.tgt AND f.key = " + key +
		" AND f.base = ANY(" + c.bases() + ") JOIN res " + t + " ON " + t + ".site = $1 AND " + t + ".typ = " + typ + " AND " + t + ".rid = f.rid WHERE " + visible
	if condition.Above {
		step = "SELECT f.tgt FROM " + members + " m JOIN res " + t + " ON " + t + ".site = $1 AND " + t + ".self = m.tgt AND " + t + ".typ = " + typ +
			" JOIN ix_ref f ON f.site = $1 AND f.rid = " + t + ".rid AND f.key = " + key + " AND f.base = ANY(" + c.bases() + ") WHERE " + visible
	}
	c.with = append(c.with, members+"(tgt) AS (SELECT "+c.arg(root)+"::int8 UNION "+step+")")
	return members, nil
}

// sql puts the tables before a statement that it names.
func (c *compiler) sql(statement string) string {
	if len(c.with) == 0 {
		return statement
	}
	return "WITH RECURSIVE " + strings.Join(c.with, ",\n") + "\n" + statement
}
