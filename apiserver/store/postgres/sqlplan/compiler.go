package sqlplan

import (
	"context"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// compiler translates the conditions of a query into SQL. Each condition has a test, which decides
// on one record and starts at that record's row or index entries. Some conditions also have an
// accessPath, which finds the candidates.
type compiler struct {
	*Statement
	ctx   context.Context
	index *Index
	// earlier is Database.Earlier.
	earlier indexrow.Earlier
	access  store.Access
	// local are the hashes of the site's own base URLs. localArg is the placeholder of the argument
	// with them, or empty before the first use.
	local    []int64
	localArg string
	// referencePaths are the reference paths of the site. They are loaded only if the query needs
	// them.
	referencePaths []indexrow.ReferencePath
	// resolved are the results of queries that run before this statement.
	resolved *resolvedTypes
	with     []string
	names    int
	// facets are the facets that all matches have.
	facets facetBits
	// isRelated reports whether access paths are those of records other than the matches.
	isRelated bool
}

// facetBits are facets as bits of the column facets: those of ix_date and ix_str (indexrow.FacetBit) in
// periods, and those of ix_text (indexrow.TextFacetBit) in texts.
type facetBits struct{ periods, texts int64 }

// bases returns the placeholder of the argument with the hashes of the site's own base URLs.
func (c *compiler) bases() string {
	if c.localArg == "" {
		c.localArg = c.Arg(c.local) + "::int8[]"
	}
	return c.localArg
}

// checkpoint is the number of arguments and CTEs of a statement at some time, so that restore can
// remove what a useless list has added.
type checkpoint struct {
	args, with int
	localArg   string
}

func (c *compiler) checkpoint() checkpoint { return checkpoint{len(c.Args), len(c.with), c.localArg} }

// restore removes what was added to the statement since the checkpoint.
func (c *compiler) restore(to checkpoint) {
	c.Args, c.with, c.localArg = c.Args[:to.args], c.with[:to.with], to.localArg
}

// name returns a table name that is unique in the statement.
func (c *compiler) name(prefix string) string {
	c.names++
	return prefix + strconv.Itoa(c.names)
}

// candidate is a record on which a condition is tested.
type candidate struct {
	typ string
	// rid is the SQL of its rid. row is the name of its row of res or hist.
	rid, row string
	// usesRow is set to true by a test that needs another column of the row than rid.
	usesRow *bool
	// isPast reports whether the candidate is a superseded version, which is a row of hist.
	isPast bool
}

func (n candidate) column(name string) string {
	*n.usesRow = true
	return n.row + "." + name
}

// candidateRow returns a candidate whose row is already joined in the statement.
func candidateRow(typ, row string) candidate {
	return candidate{typ, row + ".rid", row, new(bool), false}
}

const (
	always = "TRUE"
	never  = "FALSE"
)

// exists returns the test whether a table expression has a row. It uses a scalar subquery, which
// Postgres evaluates for one record at a time, and only if the tests before it are true. EXISTS may
// become a join.
func exists(from string) string { return "(SELECT TRUE FROM " + from + " LIMIT 1) IS NOT NULL" }

func (c *compiler) key(typeName, param string) string {
	return c.Arg(c.index.Hash.Param(typeName, param))
}

// test returns the test of a condition on a candidate. Errors: *store.AmbiguousError, those of
// Database.ReadNumbers.
func (c *compiler) test(n candidate, condition store.Condition) (string, error) {
	switch condition := condition.(type) {
	case store.All:
		return c.joinTests(n, condition, always, " AND ")
	case store.Any:
		if names, all := labelNames(condition); all {
			return c.hasAnyLabel(n, names), nil
		}
		if param, areas := periodAreas(condition); len(areas) > 1 {
			return c.testPeriods(n, param, areas), nil
		}
		groups, rest := c.grouped(n.typ, condition)
		parts := make([]string, 0, len(groups))
		for _, g := range groups {
			parts = append(parts, g.test(c, n))
		}
		more, err := c.joinTests(n, rest, never, " OR ")
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
	case store.LinksTo:
		return c.linksTo(n, condition)
	default:
		return c.testOwn(n, condition), nil
	}
}

// joinTests joins the tests of conditions with the operator with. It returns empty if there are
// none.
func (c *compiler) joinTests(n candidate, conditions []store.Condition, empty, with string) (string, error) {
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

// testOwn returns the test of a condition on values of the candidate itself.
func (c *compiler) testOwn(n candidate, condition store.Condition) string {
	switch condition := condition.(type) {
	case store.HasLabel:
		return c.hasAnyLabel(n, []string{string(condition)})
	case store.IDIn:
		return n.column("self") + " = ANY(" + c.selves(n.typ, condition) + ")"
	case store.UpdatedIn:
		return c.updatedIn(n.column("upd"), condition)
	case store.Present:
		return c.testPresent(n, condition.Param)
	case store.TokenIs:
		return c.testToken(n, condition)
	case store.PairIs:
		return exists(c.earlier.Tokens() + " x WHERE " + c.pair(n.typ, condition) + " AND x.rid = " + n.rid)
	case store.TextIs:
		if !c.earlier.WideTexts {
			return c.testText(n, condition)
		}
		return exists("ix_str x WHERE x.site = $1 AND x.key = " + c.key(n.typ, condition.Param) + " AND x.rid = " + n.rid +
			" AND " + text(c.Statement, condition, false))
	case store.PeriodIs:
		return c.testPeriods(n, condition.Param, []store.PeriodArea{areaOf(condition)})
	case store.SinglePeriodIn:
		return c.testPeriods(n, condition.Param, condition.Areas)
	case store.Near:
		return exists("ix_pos x WHERE x.site = $1 AND x.key = " + c.key(n.typ, condition.Param) + " AND x.rid = " + n.rid +
			" AND " + point(c.Statement, condition))
	case store.RefersTo:
		return exists("ix_ref x WHERE " + c.refersTo(n.typ, condition) + " AND x.rid = " + n.rid)
	default:
		panic("unknown type of condition") // the interface is sealed
	}
}

// testPeriods returns the test whether a period of a parameter is in one of the areas.
func (c *compiler) testPeriods(n candidate, param string, areas []store.PeriodArea) string {
	return exists("ix_date x WHERE x.site = $1 AND x.key = " + c.key(n.typ, param) + " AND x.rid = " + n.rid +
		" AND " + anyPeriod(c.Statement, areas, false))
}

func (c *compiler) selves(typeName string, ids store.IDIn) string {
	selves := make([]int64, len(ids))
	for i, id := range ids {
		selves[i] = c.index.Hash.Self(typeName, id)
	}
	return c.Arg(selves) + "::int8[]"
}

func (c *compiler) updatedIn(upd string, condition store.UpdatedIn) string {
	parts := []string{}
	if !condition.From.IsZero() {
		parts = append(parts, upd+" >= "+c.Arg(CeilMillis(condition.From)))
	}
	if !condition.Until.IsZero() {
		parts = append(parts, upd+" < "+c.Arg(CeilMillis(condition.Until)))
	}
	if len(parts) == 0 {
		return always
	}
	return "(" + strings.Join(parts, " AND ") + ")"
}

// testToken returns the test of a condition on tokens. It tests facets, and systems without a code,
// by the column marks of the candidate, and other tokens by their rows.
func (c *compiler) testToken(n candidate, is store.TokenIs) string {
	key := c.index.Hash.Param(n.typ, is.Param)
	if is.Code == nil && is.System != nil {
		return c.Arg(c.index.Hash.SystemMark(key, *is.System)) + " = ANY(" + n.column("marks") + ")"
	}
	if is.Code != nil && c.index.Extractor.IsFacet(is.Param) {
		return c.Arg(c.index.Hash.FacetMark(key, is)) + " = ANY(" + n.column("marks") + ")"
	}
	return exists(c.earlier.Tokens() + " x WHERE " + token(c.Statement, c.index.Hash, c.tokenKeys(n.typ, is.Param), is) + " AND x.rid = " + n.rid)
}

// tokenKeys returns the keys under which the tokens of a parameter are stored.
func (c *compiler) tokenKeys(typeName, param string) []int64 {
	if c.earlier.AllTokens {
		return []int64{c.index.Hash.Param(typeName, param)}
	}
	return c.index.Hash.Params(typeName, param, c.index.Extractor.Parts(typeName, param))
}

func (c *compiler) pair(typeName string, is store.PairIs) string {
	return "x.site = $1 AND x.key = " + c.key(typeName, is.Param) + " AND x.code = " + c.Arg(c.index.Hash.Pair(is))
}

// accessFilter returns the test whether the caller of the query may see a candidate.
func (c *compiler) accessFilter(n candidate) (string, error) {
	if c.access == nil {
		return always, nil
	}
	condition, allowed := c.access[n.typ]
	if !allowed {
		return never, nil
	}
	return c.testUnfiltered(n, condition)
}

// testUnfiltered returns the test of a condition of Access. Access does not apply to the records to
// which the condition follows references, because the response does not contain these records.
func (c *compiler) testUnfiltered(n candidate, condition store.Condition) (string, error) {
	access := c.access
	c.access = nil
	defer func() { c.access = access }()
	return c.test(n, condition)
}

// liveAndVisible returns the test whether a candidate is live, visible, and meets the condition if
// that is not nil.
func (c *compiler) liveAndVisible(n candidate, condition store.Condition) (string, error) {
	visible, err := c.accessFilter(n)
	if err != nil || condition == nil {
		return "NOT " + n.row + ".deleted AND " + visible, err
	}
	where, err := c.test(n, condition)
	return "NOT " + n.row + ".deleted AND " + where + " AND " + visible, err
}
