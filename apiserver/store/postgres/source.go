package postgres

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
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
	// ranked is up to how many records of a list are looked up one by one for their place in
	// an order, rather than looked for on a walk in that order. Of a million records, 200 is
	// where both cost the same.
	ranked int
}

var defaultBounds = bounds{few: 1750, some: 10_000, many: 30, ranked: 200}

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
	if len(listed) == 0 && len(others) == 1 && !c.hides(typeName) {
		others[0].list = c.gatherWalked(typeName, others[0].condition)
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
	// onlyRid tells that of the records nothing is read but the rid.
	onlyRid bool
	order   order.Order
	// after is where the page before ended; inclusive takes a record at the very place too.
	after     *order.Place
	inclusive bool
	limit     string
	// page is the limit as a number where it is that of a page.
	page int
	// remembers tells that lists remembered to be long are not tried. Skipped and tried are
	// what lists are remembered by, slow tells that a walk in their stead was, and passed is
	// how many of those tried come before a branch.
	remembers      bool
	skipped, tried []uint64
	slow           bool
	passed         int
	// some are the lists that are tested against, by the number of their part.
	some map[int]against
}

// against is a table with the rids of a list, unless they are too many to be of use.
type against struct{ table, tooMany string }

// readFor is how many records of a list are read rather than look one up, which takes the
// time of three and touches the pages of two hundred.
const readFor = 10

// branches writes all branches.
func (s *source) branches() (string, error) {
	var branches []string
	var gates []string
	for i := 0; i < min(s.lists, mostLists); i++ {
		l := s.parts[i].list
		if i == s.ordering() {
			continue // walked in order, from its beginning to its end
		}
		if i == 0 && s.lists == 1 && l.ordered && s.order.ByCreation() {
			break // walked as cheaply as counted
		}
		t, tried, err := s.take(l, s.few(i))
		if err != nil {
			return "", err
		}
		if !tried {
			continue
		}
		branch, err := s.fromFew(t, gates, i)
		if err != nil {
			return "", err
		}
		branches = append(branches, branch)
		if l.few {
			return strings.Join(branches, " UNION ALL "), nil
		}
		gates = append(gates, t.size()+" >= "+t.tooMany)
		s.passed++
	}
	walk, err := s.walk(gates)
	if err != nil {
		return "", err
	}
	return strings.Join(append(branches, walk), " UNION ALL "), nil
}

// ordering is the part that bounds what the order goes by first: a walk in that order passes
// nothing else. It is -1 where there is none.
func (s *source) ordering() int {
	return slices.IndexFunc(s.parts, func(part conjunct) bool {
		switch is := part.condition.(type) {
		case store.SinglePeriodIn:
			return s.order[0].Field == store.SortPeriod && s.order[0].Param == is.Param
		case store.UpdatedIn:
			return s.order[0].Field == store.SortUpdated && part.list != nil
		default:
			return false
		}
	})
}

// mostShort is up to how many records a page is short.
const mostShort = 100

// mostPassed is how many entries a walk may pass to be short: all of them take some 200 ms,
// which others wait for once, as it is slow from then on.
const mostPassed = 2_000_000

// short reports whether a page costs what its records cost, whatever the site holds: each
// step of the walk gives one of them. So it likely is where the walk is along a parameter
// that has many such entries, and not too many others, and was so before.
func (s *source) short() bool {
	if !s.order.ByCreation() || s.hides(s.typeName) {
		return false
	}
	if len(s.parts) == 0 {
		return true
	}
	first := s.parts[0].list
	if len(s.parts) == 1 && s.lists == 1 && first.ordered && first.exact {
		return true
	}
	return len(s.tried) == 0 && !s.slow && s.lists > 0 && first.walked != 0 && s.firstDecides() && s.site.entries(s.ctx, first.walked) <= mostPassed
}

// hides reports whether some records of a type may not be met.
func (c *compiler) hides(typeName string) bool { return c.access != nil && !isAll(c.access[typeName]) }

// isAll reports whether access to a type is to all of it.
func isAll(condition store.Condition) bool {
	all, ok := condition.(store.All)
	return ok && len(all) == 0
}

// testable reports whether others may be tested against the list.
func (l *list) testable() bool {
	return l != nil && l.from != nil && l.exact && !l.few && l.rank != rankFacet && (l.rank < rankRelated || l.rank == rankPeriod)
}

// testAgainst tests a rid against a list, if there turn out to be many to test and not too
// many on the list; else by itself. Tested is the list that the rids are from; nil where it
// is not known how many they are.
func (s *source) testAgainst(part int, rid, test string, tested *taken) (string, error) {
	l := s.parts[part].list
	if !l.testable() || s.lists < 2 && s.order.ByCreation() {
		return test, nil
	}
	t, known := s.some[part]
	if !known {
		from, err := l.from()
		if err != nil {
			return "", err
		}
		t = against{s.name("some"), strconv.Itoa(s.site.bounds.some + 1)}
		if tested != nil && s.order.ByCreation() {
			t.tooMany = "LEAST(" + t.tooMany + ", " + tested.size() + " * " + strconv.Itoa(readFor) + ")"
		}
		s.with = append(s.with, t.table+" AS MATERIALIZED (SELECT rid FROM ("+from+") l LIMIT "+t.tooMany+")")
		if s.some == nil {
			s.some = map[int]against{}
		}
		s.some[part] = t
	}
	when := "(SELECT count(*) FROM " + t.table + ") < " + t.tooMany
	if tested != nil {
		when = tested.size() + " > " + strconv.Itoa(s.site.bounds.many) + " AND " + when
	}
	return "CASE WHEN " + when + " THEN " + rid + " IN (SELECT rid FROM " + t.table + ") ELSE " + test + " END", nil
}

// tests writes all conditions but the one that a branch has met already, on the rids named
// d and the rows named r: those first that need no row.
func (s *source) tests(rid string, met int, tested *taken) (ofRid, ofRow []string, err error) {
	for i, part := range s.parts {
		if i == met && part.list.exact {
			continue
		}
		usesRow := false
		test, err := s.test(node{s.typeName, rid, "r", &usesRow}, part.condition)
		if err != nil {
			return nil, nil, err
		}
		if test, err = s.testAgainst(i, rid, test, tested); err != nil {
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

// columns are what is read of each record, and how many lists were too long for it.
func (s *source) columns(rid string) string {
	if s.onlyRid {
		return rid
	}
	return stateColumns + ", " + strconv.Itoa(s.passed) + "::int2"
}

func (s *source) direction() string { return direction(s.order.Descends()) }

// behindRid is what comes behind the page before in the order of creation, and can have been
// updated before a time that the query names: nothing is updated before it is created.
func (s *source) behindRid(rid string) []string {
	if !s.order.ByCreation() {
		return nil
	}
	var where []string
	if s.after != nil {
		where = append(where, rid+behindOperator(s.order.Descends(), s.inclusive)+s.arg(s.after.Created))
	}
	for _, part := range s.parts {
		if updated, ok := part.condition.(store.UpdatedIn); ok && !updated.Until.IsZero() {
			where = append(where, rid+" < "+s.arg(ridFloor(time.UnixMilli(ceilMillis(updated.Until)))))
		}
	}
	return where
}

// fromRids reads the records with the rids that a subquery gives, in its order. All that is
// listed lives.
func (s *source) fromRids(driver string, met int, tested *taken) (string, error) {
	ofRid, ofRow, err := s.tests("d.rid", met, tested)
	if err != nil {
		return "", err
	}
	driver = "(" + driver + ") d"
	if len(ofRid) > 0 {
		driver = "(SELECT d.rid FROM " + driver + whereAll(ofRid) + ") d"
	}
	if s.order.ByCreation() {
		if !s.onlyRid || len(ofRow) > 0 {
			driver += s.rowOf()
		}
		return "(SELECT " + s.columns("d.rid") + " FROM " + driver + whereAll(ofRow) + " ORDER BY d.rid " + s.direction() + " LIMIT " + s.limit + ")", nil
	}
	r := s.ranking(s.order, s.typeName, "d.rid", s.after)
	where := ofRow
	if s.after != nil {
		where = append(where, s.behind(&r, s.inclusive))
	}
	if r.usesRow || len(ofRow) > 0 {
		driver += s.rowOf()
		return "(SELECT " + s.columns("d.rid") + ", " + strings.Join(r.columns, ", ") + " FROM " + driver + r.lateral + whereAll(where) +
			" ORDER BY " + r.orderBy() + " LIMIT " + s.limit + ")", nil
	}
	// Only the rows of the page are read.
	names := rankNames(s.order)
	ranked := "(SELECT d.rid, " + strings.Join(r.columns, ", ") + " FROM " + driver + r.lateral + whereAll(where) + " ORDER BY " + r.orderBy() + " LIMIT " + s.limit + ")"
	from := ranked + " d(rid, " + names + ")"
	if !s.onlyRid {
		from += s.rowOf()
	}
	return "(SELECT " + s.columns("d.rid") + ", " + names + " FROM " + from + ")", nil
}

// walk reads the records in the order wanted and tests each; the gates tell that no list is short.
func (s *source) walk(gates []string) (string, error) {
	if l, part := s.walked(); l != nil && s.order.ByCreation() {
		behind := ""
		for _, condition := range append(s.behindRid("x.rid"), gates...) {
			behind += " AND " + condition
		}
		driver, err := l.walk(behind, s.direction())
		if err != nil {
			return "", err
		}
		return s.fromRids(driver, part, nil)
	}
	if byParam(s.order) {
		return s.walkByParam(gates)
	}
	return s.walkAll(gates)
}

// walked is the list to walk, if there is one: a facet's only where it is the only one that
// can be read.
func (s *source) walked() (l *list, part int) {
	for i, p := range s.parts {
		if p.list != nil && p.list.walk != nil && (p.list.rank != rankFacet || s.lists == 1) {
			return p.list, i
		}
	}
	return nil, 0
}

// walkAll reads all records of the type.
func (s *source) walkAll(gates []string) (string, error) {
	ofRid, ofRow, err := s.tests("r.rid", -1, nil)
	if err != nil {
		return "", err
	}
	where := append([]string{"r.site = $1", "r.typ = " + s.arg(s.typeName), "NOT r.deleted"}, gates...)
	where = append(append(append(where, s.behindRid("r.rid")...), ofRid...), ofRow...)
	if s.order.ByCreation() {
		return "(SELECT " + s.columns("r.rid") + " FROM res r" + whereAll(where) + " ORDER BY r.rid " + s.direction() + " LIMIT " + s.limit + ")", nil
	}
	r := s.ranking(s.order, s.typeName, "r.rid", s.after)
	if s.after != nil {
		where = append(where, s.behind(&r, s.inclusive))
	}
	return "(SELECT " + s.columns("r.rid") + ", " + strings.Join(r.columns, ", ") + " FROM res r" + r.lateral + whereAll(where) +
		" ORDER BY " + r.orderBy() + " LIMIT " + s.limit + ")", nil
}
