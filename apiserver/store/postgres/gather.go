package postgres

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// list is how to gather the records that meet a condition.
type list struct {
	// from selects rids: all that meet the condition and, unless it is exact, others. It is nil
	// where no range of an index has them.
	from func() (string, error)
	// walk, if not nil, selects them one after the other in the order of creation: at costs
	// that do not depend on how many there are.
	walk  func(behind, direction string) (string, error)
	exact bool
	// ordered tells that walk needs no more than one step for each record.
	ordered bool
	// walked is the parameter whose entries walk passes, if it meets others than wanted.
	walked int64
	// few tells that there cannot be many.
	few bool
	// rank is lower for what most likely leaves fewer.
	rank int
}

// nobody is a list without records. It names the site for the statement that it may be all of.
const nobody = "SELECT NULL::int8 AS rid WHERE $1::int IS NULL"

const (
	rankIDs = iota
	rankReference
	rankToken
	rankText
	rankRelated
	rankPeriod
	rankPoint
	rankUpdated
	rankFacet
)

// gather finds the list of a condition on records of a type; nil when there is none.
func (c *compiler) gather(typeName string, condition store.Condition) *list {
	switch condition := condition.(type) {
	case store.All:
		return c.gatherAll(typeName, condition)
	case store.Any:
		return c.gatherAny(typeName, condition)
	case store.IDIn:
		return &list{exact: true, few: true, rank: rankIDs, from: func() (string, error) {
			return "SELECT x.rid FROM res x WHERE x.site = $1 AND x.self = ANY(" + c.selves(typeName, condition) + ") AND NOT x.deleted", nil
		}}
	case store.TokenIs:
		if condition.Code == nil {
			return nil
		}
		rank := rankToken
		if c.site.index.facet(condition.Param) {
			rank = rankFacet
		}
		return c.lines(rank, "ix_tok", func() string {
			return c.site.index.token(c.statement, c.site.hash.param(typeName, condition.Param), condition)
		})
	case store.PairIs:
		return c.lines(rankToken, "ix_tok", func() string { return c.pair(typeName, condition) })
	case store.RefersTo:
		return c.lines(rankReference, "ix_ref", func() string { return c.refersTo(typeName, condition) })
	case store.RefersToID:
		return c.gatherRefersToID(typeName, condition)
	case store.RefersAround:
		return c.gatherAround(typeName, condition)
	case store.TextIs:
		if condition.Match == store.Exactly || condition.Match == store.StartsExactly {
			return c.gatherOriginal(typeName, condition)
		}
		if condition.Match != store.StartsWith || len(condition.Text) > longestValue {
			return nil
		}
		return c.ranged(rankText, "ix_str", c.site.hash.param(typeName, condition.Param), func() string {
			return text(c.statement, condition, true)
		})
	case store.PeriodIs:
		if condition.From == store.Unbounded && condition.Until.Most == store.TheEnd {
			return nil
		}
		return c.periods(typeName, condition.Param, areaOf(condition))
	case store.SinglePeriodIn:
		return c.gatherSinglePeriod(typeName, condition)
	case store.UpdatedIn:
		return c.gatherUpdated(typeName, condition)
	case store.Near:
		return &list{exact: true, rank: rankPoint, from: func() (string, error) {
			return "SELECT x.rid FROM ix_pos x WHERE x.site = $1 AND x.key = " + c.key(typeName, condition.Param) + " AND " + point(c.statement, condition), nil
		}}
	case store.Chain:
		return c.gatherChain(typeName, condition)
	case store.ReferredBy:
		return c.gatherReferredBy(typeName, condition)
	default: // Present, Not
		return nil
	}
}

// gatherOriginal leads to an original text by the folded one: as it is, or as texts are
// folded.
func (c *compiler) gatherOriginal(typeName string, condition store.TextIs) *list {
	if c.site.index.fold == nil || len(condition.Text) > longestValue {
		return nil
	}
	forms := []string{condition.Text}
	if folded := c.site.index.fold(condition.Text); folded != condition.Text {
		forms = append(forms, folded)
	}
	return &list{exact: true, rank: rankText, from: func() (string, error) {
		parts := make([]string, len(forms))
		for i, form := range forms {
			var leads string
			if condition.Match == store.StartsExactly {
				leads = text(c.statement, store.TextIs{Match: store.StartsWith, Text: form}, true)
			} else {
				leads = "x.val = " + c.arg([]byte(form[:min(len(form), longestValue)]))
			}
			parts[i] = "SELECT x.rid FROM ix_str x WHERE x.site = $1 AND x.key = " + c.key(typeName, condition.Param) + " AND " + leads +
				" AND " + text(c.statement, condition, false)
		}
		return strings.Join(parts, " UNION ALL "), nil
	}}
}

// lines is the list of rows that an index keeps in the order of creation.
func (c *compiler) lines(rank int, table string, where func() string) *list {
	return &list{
		exact: true, ordered: true, rank: rank,
		from: func() (string, error) { return "SELECT x.rid FROM " + table + " x WHERE " + where(), nil },
		walk: func(behind, direction string) (string, error) {
			return "SELECT DISTINCT x.rid FROM " + table + " x WHERE " + where() + behind + " ORDER BY x.rid " + direction, nil
		},
	}
}

// ranged is the list of rows with a value in a range, which another index has in the order
// of creation: to be walked where the range is wide. The order makes the planner take that
// index, as sessions have no sorts; it compares the values in the index's pages, which takes
// a quarter of the time that rows do which are fetched to be compared.
func (c *compiler) ranged(rank int, table string, key int64, where func() string) *list {
	facets := c.facets
	meets := func() string {
		if facets == 0 {
			return where()
		}
		bits := c.arg(facets)
		return "(x.facets & " + bits + ") = " + bits + " AND " + where()
	}
	all := func() string { return table + " x WHERE x.site = $1 AND x.key = " + c.arg(key) }
	return &list{
		exact: true, rank: rank, walked: key,
		from: func() (string, error) { return "SELECT x.rid FROM " + all() + " AND " + meets(), nil },
		walk: func(behind, direction string) (string, error) {
			return "SELECT DISTINCT x.rid FROM " + all() + " AND " + meets() + behind + " ORDER BY x.rid " + direction, nil
		},
	}
}

func (c *compiler) gatherAll(typeName string, all store.All) *list {
	var best *list
	for _, part := range all {
		if l := c.gather(typeName, part); l != nil && (best == nil || l.rank < best.rank) {
			best = l
		}
	}
	if best == nil {
		return nil
	}
	partial := *best
	partial.exact = len(all) == 1 && best.exact
	return &partial
}

func (c *compiler) gatherAny(typeName string, alternatives store.Any) *list {
	groups, rest := c.grouped(alternatives)
	union := &list{exact: true, few: true}
	var parts []func() (string, error)
	for _, g := range groups {
		union.few, union.rank = false, max(union.rank, g.rank(c))
		parts = append(parts, func() (string, error) { return "SELECT x.rid FROM " + g.listed(c, typeName), nil })
	}
	for _, condition := range rest {
		l := c.gather(typeName, condition)
		if l == nil {
			return nil
		}
		union.exact, union.few, union.rank = union.exact && l.exact, union.few && l.few, max(union.rank, l.rank)
		parts = append(parts, l.from)
	}
	union.from = func() (string, error) {
		if len(parts) == 0 {
			return nobody, nil
		}
		texts := make([]string, len(parts))
		for i, part := range parts {
			var err error
			if texts[i], err = part(); err != nil {
				return "", err
			}
		}
		return strings.Join(texts, " UNION ALL "), nil
	}
	if walked := c.gatherWalked(typeName, alternatives); walked != nil {
		union.walk, union.walked = walked.walk, walked.walked
	}
	return union
}

// gatherUpdated is the list of records that were updated since a time; none where only a time
// before which they were updated is given, as most records are older than that.
func (c *compiler) gatherUpdated(typeName string, condition store.UpdatedIn) *list {
	if condition.From.IsZero() {
		return nil
	}
	return &list{exact: true, rank: rankUpdated, from: func() (string, error) {
		return "SELECT x.rid FROM res x WHERE x.site = $1 AND x.typ = " + c.arg(typeName) + " AND NOT x.deleted AND " + c.updatedIn("x.upd", condition), nil
	}}
}

func (c *compiler) gatherRefersToID(typeName string, condition store.RefersToID) *list {
	return &list{exact: true, rank: rankReference, from: func() (string, error) {
		to, err := c.targetsOf(typeName, condition)
		if err != nil || len(to) == 0 {
			return nobody, err
		}
		return "SELECT x.rid FROM ix_ref x WHERE " + c.references(typeName, condition.Param, to...), nil
	}}
}

func (c *compiler) gatherAround(typeName string, condition store.RefersAround) *list {
	return &list{exact: true, rank: rankReference, from: func() (string, error) {
		members, err := c.around(typeName, condition)
		if err != nil {
			return "", err
		}
		if members == "" {
			return "SELECT x.rid FROM ix_ref x WHERE " + c.refersTo(typeName, store.RefersTo{Param: condition.Param, To: condition.To}), nil
		}
		return "SELECT x.rid FROM " + members + " m CROSS JOIN LATERAL (SELECT f.rid FROM ix_ref f WHERE f.site = $1 AND f.tgt = m.tgt AND f.key = " +
			c.key(typeName, condition.Param) + " AND f.base = ANY(" + c.bases() + ")) x", nil
	}}
}

// meeting selects the rows of a type, named t, that may be met and meet a condition: from
// the list of the condition.
func (c *compiler) meeting(typeName string, condition store.Condition, l *list) (string, error) {
	candidates, err := l.from()
	if err != nil {
		return "", err
	}
	row := c.name("t")
	where, err := c.restricted(inner(typeName, row), condition)
	if err != nil {
		return "", err
	}
	i := c.name("i")
	return "(SELECT " + row + ".rid, " + row + ".self FROM (SELECT DISTINCT rid FROM (" + candidates + ") " + i + ") " + i + "d CROSS JOIN LATERAL " +
		"(SELECT * FROM res x WHERE x.site = $1 AND x.typ = " + c.arg(typeName) + " AND x.rid = " + i + "d.rid LIMIT 1) " + row + " WHERE " + where + ")", nil
}

// gatherOther is the list of a condition on other records than those looked for.
func (c *compiler) gatherOther(typeName string, condition store.Condition) *list {
	facets := c.facets
	c.facets = 0
	defer func() { c.facets = facets }()
	return c.gather(typeName, condition)
}

func (c *compiler) gatherChain(typeName string, condition store.Chain) *list {
	targets := c.gatherOther(condition.Type, condition.Where)
	if condition.Where == nil || targets == nil {
		return nil
	}
	return &list{exact: true, rank: rankRelated, from: func() (string, error) {
		meeting, err := c.meeting(condition.Type, condition.Where, targets)
		if err != nil {
			return "", err
		}
		return "SELECT x.rid FROM " + meeting + " t CROSS JOIN LATERAL (SELECT f.rid FROM ix_ref f WHERE f.site = $1 AND f.tgt = t.self AND " +
			c.paramKeys("f.key", typeName, condition.Param) + " AND f.base = ANY(" + c.bases() + ")) x", nil
	}}
}

func (c *compiler) gatherReferredBy(typeName string, condition store.ReferredBy) *list {
	referring := c.gatherOther(condition.Type, condition.Where)
	if condition.Where == nil || referring == nil {
		return nil
	}
	return &list{exact: true, rank: rankRelated, from: func() (string, error) {
		meeting, err := c.meeting(condition.Type, condition.Where, referring)
		if err != nil {
			return "", err
		}
		return "SELECT x.rid FROM " + meeting + " t CROSS JOIN LATERAL (SELECT f.tgt FROM ix_ref f WHERE f.site = $1 AND f.rid = t.rid AND " +
			c.paramKeys("f.key", condition.Type, condition.Param) + " AND f.base = ANY(" + c.bases() + ")) f CROSS JOIN LATERAL " +
			"(SELECT r.rid FROM res r WHERE r.site = $1 AND r.self = f.tgt AND r.typ = " + c.arg(typeName) + " AND NOT r.deleted LIMIT 1) x", nil
	}}
}
