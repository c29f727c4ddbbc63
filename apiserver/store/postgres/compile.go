package postgres

import (
	"context"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// compiler writes one statement of a query. Each condition has two forms: a test, which
// decides on one record and looks up no more than that record's entries, and, where there
// is one, a list of the records that meet it.
type compiler struct {
	*statement
	ctx    context.Context
	site   *Site
	access store.Access
	// local are the bases that are the site's own, localArg their name once it is needed.
	local    []int64
	localArg string
	// paths are those of the site, where the query needs them.
	paths []path
	// known are the answers to questions that must be asked before the query.
	known *answers
	with  []string
	names int
	// facets are the bits of the facets that all records looked for have.
	facets int64
}

func (r *reader) compiler() *compiler {
	local := []int64{0}
	for _, base := range r.query.Bases {
		local = append(local, r.site.hash.base(base))
	}
	return &compiler{
		statement: r.site.statement(), ctx: r.ctx, site: r.site, access: r.query.Access, local: local, paths: r.paths, known: &r.answers,
	}
}

// bases are the site's own, as an argument.
func (c *compiler) bases() string {
	if c.localArg == "" {
		c.localArg = c.arg(c.local) + "::int8[]"
	}
	return c.localArg
}

// written is how far a statement is written.
type written struct {
	args, with int
	localArg   string
}

func (c *compiler) written() written { return written{len(c.args), len(c.with), c.localArg} }

// unwrite takes back what was written since.
func (c *compiler) unwrite(since written) {
	c.args, c.with, c.localArg = c.args[:since.args], c.with[:since.with], since.localArg
}

// name makes a name for a table that is unique in the statement.
func (c *compiler) name(prefix string) string {
	c.names++
	return prefix + strconv.Itoa(c.names)
}

// node is the record that a test decides on.
type node struct {
	typ string
	// rid is how the statement calls its rid, row the row of res.
	rid, row string
	// usesRow is set by a test that needs more of the row than its rid.
	usesRow *bool
}

func (n node) column(name string) string {
	*n.usesRow = true
	return n.row + "." + name
}

// inner is a node whose row is at hand.
func inner(typ, row string) node { return node{typ, row + ".rid", row, new(bool)} }

const (
	always = "TRUE"
	never  = "FALSE"
)

// found tests that a table expression has a row. It is a scalar subquery, so that it is
// evaluated by itself for one record at a time, and only where the tests before it hold.
func found(from string) string { return "(SELECT TRUE FROM " + from + " LIMIT 1) IS NOT NULL" }

// key is the key of a parameter as an argument.
func (c *compiler) key(typeName, param string) string {
	return c.arg(c.site.hash.param(typeName, param))
}

// test writes a condition on a node.
func (c *compiler) test(n node, condition store.Condition) (string, error) {
	switch condition := condition.(type) {
	case store.All:
		return c.join(n, condition, always, " AND ")
	case store.Any:
		if param, areas := periodsOf(condition); len(areas) > 1 {
			return c.testPeriods(n, param, areas), nil
		}
		groups, rest := c.grouped(condition)
		parts := make([]string, 0, len(groups))
		for _, g := range groups {
			parts = append(parts, found(g.tested(c, n)))
		}
		more, err := c.join(n, rest, never, " OR ")
		if len(parts) > 0 && more != never {
			parts = append(parts, more)
		}
		if len(parts) == 0 {
			return more, err
		}
		return "(" + strings.Join(parts, " OR ") + ")", err
	case store.Not:
		part, err := c.test(n, condition.Condition)
		return "NOT " + part, err
	case store.RefersToID:
		return c.refersToID(n, condition)
	case store.RefersAround:
		return c.refersAround(n, condition)
	case store.Chain:
		return c.chain(n, condition)
	case store.ReferredBy:
		return c.referredBy(n, condition)
	default:
		return c.own(n, condition), nil
	}
}

// join writes conditions on a node, with empty where there are none.
func (c *compiler) join(n node, conditions []store.Condition, empty, with string) (string, error) {
	parts := make([]string, len(conditions))
	for i, condition := range conditions {
		var err error
		if parts[i], err = c.test(n, condition); err != nil {
			return "", err
		}
	}
	switch len(parts) {
	case 0:
		return empty, nil
	case 1:
		return parts[0], nil
	default:
		return "(" + strings.Join(parts, with) + ")", nil
	}
}

// own writes a condition that a record's own values decide.
func (c *compiler) own(n node, condition store.Condition) string {
	switch condition := condition.(type) {
	case store.IDIn:
		return n.column("self") + " = ANY(" + c.selves(n.typ, condition) + ")"
	case store.UpdatedIn:
		return c.updatedIn(n.column("upd"), condition)
	case store.Present:
		return c.key(n.typ, condition.Param) + " = ANY(" + n.column("marks") + ")"
	case store.TokenIs:
		return c.testToken(n, condition)
	case store.PairIs:
		return found("ix_tok x WHERE " + c.pair(n.typ, condition) + " AND x.rid = " + n.rid)
	case store.TextIs:
		return found("ix_str x WHERE x.site = $1 AND x.key = " + c.key(n.typ, condition.Param) + " AND x.rid = " + n.rid +
			" AND " + text(c.statement, condition, false))
	case store.PeriodIs:
		return c.testPeriods(n, condition.Param, []store.PeriodArea{areaOf(condition)})
	case store.SinglePeriodIn:
		return c.testPeriods(n, condition.Param, condition.Areas)
	case store.Near:
		return found("ix_pos x WHERE x.site = $1 AND x.key = " + c.key(n.typ, condition.Param) + " AND x.rid = " + n.rid +
			" AND " + point(c.statement, condition))
	case store.RefersTo:
		return found("ix_ref x WHERE " + c.refersTo(n.typ, condition) + " AND x.rid = " + n.rid)
	default:
		panic("a condition that the engine does not know") // the interface is sealed
	}
}

// testPeriods tests that a period of a parameter is in one of some areas.
func (c *compiler) testPeriods(n node, param string, areas []store.PeriodArea) string {
	return found("ix_date x WHERE x.site = $1 AND x.key = " + c.key(n.typ, param) + " AND x.rid = " + n.rid +
		" AND " + anyPeriod(c.statement, areas, false))
}

// selves are the hashes of ids of a type.
func (c *compiler) selves(typeName string, ids store.IDIn) string {
	selves := make([]int64, len(ids))
	for i, id := range ids {
		selves[i] = c.site.hash.self(typeName, id)
	}
	return c.arg(selves) + "::int8[]"
}

// updatedIn bounds upd, the column with the time of the last update.
func (c *compiler) updatedIn(upd string, condition store.UpdatedIn) string {
	parts := []string{}
	if !condition.From.IsZero() {
		parts = append(parts, upd+" >= "+c.arg(ceilMillis(condition.From)))
	}
	if !condition.Until.IsZero() {
		parts = append(parts, upd+" < "+c.arg(ceilMillis(condition.Until)))
	}
	if len(parts) == 0 {
		return always
	}
	return "(" + strings.Join(parts, " AND ") + ")"
}

// testToken looks a facet or a system alone up among the marks, all else among the tokens.
func (c *compiler) testToken(n node, is store.TokenIs) string {
	key := c.site.hash.param(n.typ, is.Param)
	if is.Code == nil && is.System != nil {
		return c.arg(c.site.hash.systemMark(key, *is.System)) + " = ANY(" + n.column("marks") + ")"
	}
	if is.Code != nil && c.site.index.facet(is.Param) {
		return c.arg(c.site.hash.facetMark(key, is)) + " = ANY(" + n.column("marks") + ")"
	}
	return found("ix_tok x WHERE " + c.site.index.token(c.statement, key, is) + " AND x.rid = " + n.rid)
}

func (c *compiler) pair(typeName string, is store.PairIs) string {
	return "x.site = $1 AND x.key = " + c.key(typeName, is.Param) + " AND x.code = " + c.arg(c.site.hash.pair(is))
}

// visible writes what the query may meet of a node's type.
func (c *compiler) visible(n node) (string, error) {
	if c.access == nil {
		return always, nil
	}
	condition, allowed := c.access[n.typ]
	if !allowed {
		return never, nil
	}
	// What access itself looks through is not the caller's to see: nothing is hidden from it.
	restricted := c.access
	c.access = nil
	defer func() { c.access = restricted }()
	return c.test(n, condition)
}

// restricted writes a condition on a live node, and what may be met of its type.
func (c *compiler) restricted(n node, condition store.Condition) (string, error) {
	visible, err := c.visible(n)
	if err != nil || condition == nil {
		return "NOT " + n.row + ".deleted AND " + visible, err
	}
	where, err := c.test(n, condition)
	return "NOT " + n.row + ".deleted AND " + where + " AND " + visible, err
}
