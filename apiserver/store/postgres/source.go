package postgres

import (
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// bounds say how long lists are read.
type bounds struct {
	// few is up to how many records a list is read as a whole; longer ones are walked in
	// order, or their records are tested while another is. A thousand entries are some 20
	// pages of an index: of a million records, 1,500 to 2,500 is where a walk for a page of
	// 20 costs the same.
	few int
	// some is up to how many records a list is read to test others against: that is cheaper
	// than to look up more than a few of them one by one, from many on.
	some, many int
}

var defaultBounds = bounds{few: 1750, some: 10_000, many: 30}

// mostLists bounds how many lists are tried for having few.
const mostLists = 3

// conjunct is a part of what a record must meet, with its list if there is one.
type conjunct struct {
	condition store.Condition
	list      *list
}

// conjuncts takes a condition apart, and sorts what can be gathered from to the front, with
// what leaves fewest first.
func (c *compiler) conjuncts(typeName string, condition store.Condition) (parts []conjunct, lists int) {
	var listed, others []conjunct
	var take func(condition store.Condition)
	take = func(condition store.Condition) {
		if all, ok := condition.(store.All); ok {
			for _, part := range all {
				take(part)
			}
			return
		}
		part := conjunct{condition, c.gather(typeName, condition)}
		if part.list == nil {
			others = append(others, part)
			return
		}
		at := len(listed)
		for at > 0 && listed[at-1].list.rank > part.list.rank {
			at--
		}
		listed = append(listed, conjunct{})
		copy(listed[at+1:], listed[at:])
		listed[at] = part
	}
	if condition != nil {
		c.facets = c.facetsOf(typeName, condition)
		take(condition)
	}
	return append(listed, others...), len(listed)
}

// facetsOf are the bits of the facets that a condition asks of every record.
func (c *compiler) facetsOf(typeName string, condition store.Condition) int64 {
	var bits int64
	switch condition := condition.(type) {
	case store.All:
		for _, part := range condition {
			bits |= c.facetsOf(typeName, part)
		}
	case store.TokenIs:
		if condition.Code != nil && c.site.index.facet(condition.Param) {
			bits = facetBit(c.site.hash.facetMark(c.site.hash.param(typeName, condition.Param), condition))
		}
	}
	return bits
}

// source writes the tables that a page is read from: the records of a type that match, from
// whichever list turns out to have few, else from a walk. Each branch is read in the order
// wanted and no further than its limit, and only one of them gives any.
type source struct {
	*compiler
	typeName string
	parts    []conjunct
	lists    int
	// columns are read from each row, named r.
	columns string
	// behind restricts the rids of a walk, in lists named x; descending is its direction.
	behind     func(rid string) string
	descending bool
	// ranked tells that rows are in another order than that of rids; ranking writes it, once
	// it is needed.
	ranked    func() ranking
	ranking   *ranking
	inclusive bool
	paged     bool
	limit     string
	// byParam is set where the order is by one parameter alone.
	byParam *paramOrder
	// some are the tables of lists that are tested against, by the number of their part.
	some map[int]string
}

// branches writes all branches.
func (s *source) branches() (string, error) {
	var branches []string
	var gates []string
	for i := 0; i < min(s.lists, mostLists); i++ {
		part := s.parts[i]
		if i == 0 && s.lists == 1 && part.list.ordered && s.ranked == nil {
			break // walked as cheaply as counted
		}
		from, err := part.list.from()
		if err != nil {
			return "", err
		}
		name := s.name("few")
		if part.list.few {
			s.with = append(s.with, name+" AS MATERIALIZED ("+from+")")
		} else {
			s.with = append(s.with, name+" AS MATERIALIZED (SELECT rid FROM ("+from+") l LIMIT "+strconv.Itoa(s.site.bounds.few+1)+")")
		}
		count := "(SELECT count(*) FROM " + name + ")"
		gate := append([]string{}, gates...)
		if !part.list.few {
			gate = append(gate, count+" <= "+strconv.Itoa(s.site.bounds.few))
		}
		branch, err := s.fromFew(name, gate, i)
		if err != nil {
			return "", err
		}
		branches = append(branches, branch)
		if part.list.few {
			return strings.Join(branches, " UNION ALL "), nil
		}
		gates = append(gates, count+" > "+strconv.Itoa(s.site.bounds.few))
	}
	walk, err := s.walk(gates)
	if err != nil {
		return "", err
	}
	return strings.Join(append(branches, walk), " UNION ALL "), nil
}

// testAgainst tests a rid against a list, if there turn out to be many to test and not too
// many on the list; else by itself. Many tells whether there are, empty that there may be.
func (s *source) testAgainst(part int, rid, test, many string) (string, error) {
	l := s.parts[part].list
	if s.lists < 2 || l == nil || !l.exact || l.few || l.rank == rankFacet || l.rank >= rankRelated && l.rank != rankPeriod {
		return test, nil
	}
	name, known := s.some[part]
	if !known {
		from, err := l.from()
		if err != nil {
			return "", err
		}
		name = s.name("some")
		s.with = append(s.with, name+" AS MATERIALIZED (SELECT rid FROM ("+from+") l LIMIT "+strconv.Itoa(s.site.bounds.some+1)+")")
		if s.some == nil {
			s.some = map[int]string{}
		}
		s.some[part] = name
	}
	when := "(SELECT count(*) FROM " + name + ") <= " + strconv.Itoa(s.site.bounds.some)
	if many != "" {
		when = many + " AND " + when
	}
	return "CASE WHEN " + when + " THEN " + rid + " IN (SELECT rid FROM " + name + ") ELSE " + test + " END", nil
}

// tests writes all conditions but the one that a branch has met already, on the rids named
// d and the rows named r: those first that need no row.
func (s *source) tests(rid string, met int, many string) (ofRid, ofRow []string, err error) {
	for i, part := range s.parts {
		if i == met && part.list.exact {
			continue
		}
		usesRow := false
		test, err := s.test(node{s.typeName, rid, "r", &usesRow}, part.condition)
		if err != nil {
			return nil, nil, err
		}
		if test, err = s.testAgainst(i, rid, test, many); err != nil {
			return nil, nil, err
		}
		if usesRow {
			ofRow = append(ofRow, test)
		} else {
			ofRid = append(ofRid, test)
		}
	}
	usesRow := false
	visible, err := s.visible(node{s.typeName, rid, "r", &usesRow})
	if err != nil {
		return nil, nil, err
	}
	if usesRow {
		return ofRid, append(ofRow, visible), nil
	}
	if visible != always {
		ofRid = append(ofRid, visible)
	}
	return ofRid, ofRow, nil
}

func (s *source) direction() string { return direction(s.descending) }

// fromFew reads the records of a short list.
func (s *source) fromFew(name string, gates []string, met int) (string, error) {
	where := append([]string{}, gates...)
	if s.paged && s.ranked == nil {
		where = append(where, s.behind("rid"))
	}
	driver := "SELECT DISTINCT rid FROM " + name
	if len(where) > 0 {
		driver += " WHERE " + strings.Join(where, " AND ")
	}
	return s.fromRids(driver+" ORDER BY rid "+s.direction(), met, "(SELECT count(*) FROM "+name+") > "+strconv.Itoa(s.site.bounds.many))
}

// fromRids reads the records with the rids that a subquery gives, in its order.
func (s *source) fromRids(driver string, met int, many string) (string, error) {
	ofRid, ofRow, err := s.tests("d.rid", met, many)
	if err != nil {
		return "", err
	}
	driver = "(" + driver + ") d"
	if len(ofRid) > 0 {
		driver = "(SELECT d.rid FROM " + driver + " WHERE " + strings.Join(ofRid, " AND ") + ") d"
	}
	from := driver + " CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.typ = " + s.arg(s.typeName) + " AND x.rid = d.rid LIMIT 1) r"
	return s.rows(from, append([]string{"NOT r.deleted"}, ofRow...), "d.rid"), nil
}

// walk reads the records in the order wanted and tests each; the gates tell that no list is short.
func (s *source) walk(gates []string) (string, error) {
	if s.ranked == nil {
		for i := range s.lists {
			if l := s.parts[i].list; l.walk != nil && (l.rank != rankFacet || s.lists == 1) {
				behind := ""
				if s.paged {
					behind = " AND " + s.behind("x.rid")
				}
				for _, gate := range gates {
					behind += " AND " + gate
				}
				driver, err := l.walk(behind, s.direction())
				if err != nil {
					return "", err
				}
				return s.fromRids(driver, i, "")
			}
		}
	}
	if s.byParam != nil {
		return s.walkByParam(gates)
	}
	ofRid, ofRow, err := s.tests("r.rid", -1, "")
	if err != nil {
		return "", err
	}
	where := append([]string{"r.site = $1", "r.typ = " + s.arg(s.typeName), "NOT r.deleted"}, gates...)
	if s.paged && s.ranked == nil {
		where = append(where, s.behind("r.rid"))
	}
	return s.rows("res r", append(append(where, ofRid...), ofRow...), "r.rid"), nil
}

// rows writes a branch.
func (s *source) rows(from string, where []string, rid string) string {
	by, columns := rid+" "+s.direction(), s.columns
	if s.ranked != nil {
		if s.ranking == nil {
			ranking := s.ranked()
			s.ranking = &ranking
		}
		from += s.ranking.lateral
		columns += ", " + strings.Join(s.ranking.columns, ", ")
		by = s.ranking.orderBy()
		if s.paged {
			where = append(where, s.compiler.behind(s.ranking, s.inclusive))
		}
	}
	return "(SELECT " + columns + " FROM " + from + " WHERE " + strings.Join(where, " AND ") + " ORDER BY " + by + " LIMIT " + s.limit + ")"
}
