package sqlplan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// resolvedTypes are the results of queries that compiler.resolveTypes runs before the statement.
type resolvedTypes struct {
	// types maps a RefersToID, with the type of the referring records, to the types of the records of
	// this site that its id may stand for.
	types map[string][]string
}

// refersTo returns the condition that a row of ix_ref, named x, meets a RefersTo.
func (c *compiler) refersTo(typeName string, condition store.RefersTo) string {
	return c.references(typeName, condition.Param, condition.To)
}

func (c *compiler) references(typeName, param string, to ...store.Reference) string {
	targets := make([]int64, len(to))
	local := true
	var base int64
	for i, reference := range to {
		targets[i], base = c.index.Hash.Target(reference)
		local = local && reference.Type != "" && (base == 0 || slices.Contains(c.local, base))
	}
	where := "x.site = $1 AND " + c.equals("x.tgt", targets) + " AND x.key = " + c.key(typeName, param)
	if local {
		return where + " AND x.base = ANY(" + c.bases() + ")"
	}
	return where + " AND x.base = " + c.Arg(base)
}

// refersToID returns the test of a RefersToID on a candidate. Errors: those of Database.ReadNumbers,
// *store.AmbiguousError if there are references with that id to records of several types.
func (c *compiler) refersToID(n candidate, condition store.RefersToID) (string, error) {
	to, err := c.targetsOf(n.typ, condition)
	if err != nil || len(to) == 0 {
		return never, err
	}
	return exists("ix_ref x WHERE " + c.references(n.typ, condition.Param, to...) + " AND x.rid = " + n.rid), nil
}

// targetsOf returns the references for which the id of a RefersToID may stand. Errors: those of
// resolveTypes.
func (c *compiler) targetsOf(typeName string, condition store.RefersToID) ([]store.Reference, error) {
	name := fmt.Sprintf("%s %t %q", typeName, c.access == nil, condition)
	types, known := c.resolved.types[name]
	if !known {
		var err error
		if types, err = c.resolveTypes(typeName, condition); err != nil {
			return nil, err
		}
		if c.resolved.types == nil {
			c.resolved.types = map[string][]string{}
		}
		c.resolved.types[name] = types
	}
	to := make([]store.Reference, len(types))
	for i, target := range types {
		to[i] = store.Reference{Type: target, ID: condition.ID}
	}
	return to, nil
}

// resolveTypes returns the types of the records to which the id of a RefersToID may refer. If more than
// one type is possible, it queries the database for the type of the record with this id to which
// visible records refer. Errors: those of Database.ReadNumbers, *store.AmbiguousError if there are
// several.
func (c *compiler) resolveTypes(typeName string, condition store.RefersToID) ([]string, error) {
	types := slices.Clone(condition.Types)
	if len(types) == 0 {
		for _, p := range c.referencePaths {
			if p.Type == typeName && p.Param == condition.Param {
				types = append(types, p.Target)
			}
		}
	}
	if len(types) < 2 {
		return types, nil
	}
	ask := &compiler{Statement: c.index.Statement(), ctx: c.ctx, index: c.index, earlier: c.earlier, access: c.access, local: c.local, referencePaths: c.referencePaths, resolved: c.resolved}
	targets := make([]int64, len(types))
	for i, target := range types {
		targets[i] = c.index.Hash.Self(target, condition.ID)
	}
	visible, err := ask.liveAndVisible(candidateRow(typeName, "r"), nil)
	if err != nil {
		return nil, err
	}
	sql := "SELECT u.n FROM unnest(" + ask.Arg(targets) + "::int8[]) WITH ORDINALITY u(tgt, n) WHERE " + exists("ix_ref x JOIN res r ON r.site = $1 AND r.typ = "+
		ask.Arg(typeName)+" AND r.rid = x.rid WHERE x.site = $1 AND x.tgt = u.tgt AND x.key = "+ask.key(typeName, condition.Param)+
		" AND x.base = ANY("+ask.bases()+") AND "+visible) + " ORDER BY u.n"
	numbers, err := c.index.Database.ReadNumbers(c.ctx, ask.sql(sql), ask.Args)
	if err != nil {
		return nil, err
	}
	matching := make([]string, len(numbers))
	for i, n := range numbers {
		matching[i] = types[n-1]
	}
	if len(matching) > 1 {
		return nil, &store.AmbiguousError{Param: condition.Param, ID: condition.ID, Types: matching}
	}
	return matching, nil
}

// paramKeys returns the condition that a column is the key of a parameter. If param is empty, the
// column may be the key of any reference parameter of the type.
func (c *compiler) paramKeys(column, typeName, param string) string {
	if param != "" {
		return column + " = " + c.key(typeName, param)
	}
	return column + " = ANY(" + c.Arg(paramKeys(c.index.Hash, c.referencePaths, func(p indexrow.ReferencePath) bool { return p.Type == typeName })) + "::int8[])"
}

// paramKeys returns the keys of the parameters of those paths for which wanted is true, without
// duplicates.
func paramKeys(hash indexrow.Hasher, paths []indexrow.ReferencePath, wanted func(indexrow.ReferencePath) bool) []int64 {
	keys := []int64{}
	for _, p := range paths {
		if key := hash.Param(p.Type, p.Param); wanted(p) && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (c *compiler) chain(n candidate, condition store.Chain) (string, error) {
	f, t := c.name("f"), c.name("t")
	where, err := c.liveAndVisible(candidateRow(condition.Type, t), condition.Where)
	if err != nil {
		return "", err
	}
	return exists("ix_ref " + f + " CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.self = " + f + ".tgt AND x.typ = " +
		c.Arg(condition.Type) + " LIMIT 1) " + t + " WHERE " + f + ".site = $1 AND " + f + ".rid = " + n.rid + " AND " +
		c.paramKeys(f+".key", n.typ, condition.Param) + " AND " + f + ".base = ANY(" + c.bases() + ") AND " + where), nil
}

func (c *compiler) referredBy(n candidate, condition store.ReferredBy) (string, error) {
	f, t := c.name("f"), c.name("t")
	where, err := c.liveAndVisible(candidateRow(condition.Type, t), condition.Where)
	if err != nil {
		return "", err
	}
	return exists("ix_ref " + f + " CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.typ = " + c.Arg(condition.Type) +
		" AND x.rid = " + f + ".rid LIMIT 1) " + t + " WHERE " + f + ".site = $1 AND " + f + ".tgt = " + n.column("self") + " AND " +
		c.paramKeys(f+".key", condition.Type, condition.Param) + " AND " + f + ".base = ANY(" + c.bases() + ") AND " + where), nil
}

// refersAround returns the test of a RefersAround: whether a candidate refers to a member of the
// hierarchy.
func (c *compiler) refersAround(n candidate, condition store.RefersAround) (string, error) {
	members, err := c.hierarchyTable(n.typ, condition)
	if err != nil {
		return "", err
	}
	if members == "" {
		return c.testOwn(n, store.RefersTo{Param: condition.Param, To: condition.To}), nil
	}
	return exists("ix_ref x WHERE x.site = $1 AND x.rid = " + n.rid + " AND x.key = " + c.key(n.typ, condition.Param) +
		" AND x.base = ANY(" + c.bases() + ") AND x.tgt IN (SELECT tgt FROM " + members + ")"), nil
}

// hierarchyTable adds a CTE with the selves of the members of a hierarchy to the statement, and returns
// its name. condition.To is a member. The CTE follows the references of visible records only. It returns
// "" if condition.To is not a record of this site.
func (c *compiler) hierarchyTable(typeName string, condition store.RefersAround) (string, error) {
	root, base := c.index.Hash.Target(condition.To)
	if condition.To.Type == "" || !slices.Contains(c.local, base) {
		return "", nil
	}
	members, t := c.name("m"), c.name("t")
	visible, err := c.liveAndVisible(candidateRow(typeName, t), nil)
	if err != nil {
		return "", err
	}
	key, typ := c.key(typeName, condition.Param), c.Arg(typeName)
	step := "SELECT " + t + ".self FROM " + members + " m JOIN ix_ref f ON f.site = $1 AND f.tgt = m.tgt AND f.key = " + key +
		" AND f.base = ANY(" + c.bases() + ") JOIN res " + t + " ON " + t + ".site = $1 AND " + t + ".typ = " + typ + " AND " + t + ".rid = f.rid WHERE " + visible
	if condition.Above {
		step = "SELECT f.tgt FROM " + members + " m JOIN res " + t + " ON " + t + ".site = $1 AND " + t + ".self = m.tgt AND " + t + ".typ = " + typ +
			" JOIN ix_ref f ON f.site = $1 AND f.rid = " + t + ".rid AND f.key = " + key + " AND f.base = ANY(" + c.bases() + ") WHERE " + visible
	}
	c.with = append(c.with, members+"(tgt) AS (SELECT "+c.Arg(root)+"::int8 UNION "+step+")")
	return members, nil
}

// sql returns a statement preceded by the CTEs in c.with. RECURSIVE applies to all of them. Only the
// CTEs of :above and :below need it; it changes nothing for other CTEs.
func (c *compiler) sql(statement string) string {
	if len(c.with) == 0 {
		return statement
	}
	return "WITH RECURSIVE " + strings.Join(c.with, ",\n") + "\n" + statement
}
