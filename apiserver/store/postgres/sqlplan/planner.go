package sqlplan

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// Limits are the lengths of lists at which one branch becomes cheaper than another. The zero value is
// not valid; DefaultLimits has the defaults.
type Limits struct {
	// MaxList is the maximum number of rids that a branch by list reads. If a list is longer, a branch by
	// another list or the branch by scan is used. A thousand rids are some 20 index pages. With a
	// million records, list and scan cost the same for a page of 20 matches at 1,500 to 2,500 rids.
	MaxList int
	// MaxSemiJoinList is the maximum number of rids in the list of a semi-join. If a list is longer,
	// each candidate is tested. It replaces MaxList in an exact total.
	MaxSemiJoinList int
	// MaxRankedList replaces MaxList if the sort value of each rid must be looked up, the alternative is a
	// scan in sort order, and all other conditions are facets, so that this scan finds a page soon. With a
	// million records, both cost the same at 200.
	MaxRankedList int
}

// DefaultLimits are the limits of all sites. Only tests use other limits.
var DefaultLimits = Limits{MaxList: 1750, MaxSemiJoinList: 10_000, MaxRankedList: 200}

// maxMaterializedLists is the maximum number of lists that a statement tries for branches by list, for
// each type. Further lists are used only for semi-joins.
const maxMaterializedLists = 4

// predicate is a condition that all matches meet, with its access path. The path is nil if the
// condition has none.
type predicate struct {
	condition store.Condition
	path      *accessPath
}

// splitPredicates splits a condition into predicates. pathCount is the number of predicates with a
// list. These predicates come first, in ascending order of size class. If there is only one
// predicate, it may have a path without a list. splitPredicates also sets c.facets.
func (c *compiler) splitPredicates(typeName string, condition store.Condition) (all []predicate, pathCount int) {
	var withPath, others []predicate
	var take func(condition store.Condition)
	take = func(condition store.Condition) {
		if all, ok := condition.(store.All); ok {
			for _, part := range all {
				take(part)
			}
			return
		}
		part := predicate{condition, c.accessPath(typeName, condition)}
		if part.path == nil {
			others = append(others, part)
			return
		}
		at := len(withPath)
		for at > 0 && withPath[at-1].path.sizeClass > part.path.sizeClass {
			at--
		}
		withPath = append(withPath, predicate{})
		copy(withPath[at+1:], withPath[at:])
		withPath[at] = part
	}
	if condition != nil {
		c.facets = c.facetsOf(typeName, condition)
		take(condition)
	}
	if len(withPath) == 0 && len(others) == 1 && !c.hasAccessFilter(typeName) {
		others[0].path = c.scanOnlyPath(typeName, others[0].condition)
	}
	return append(withPath, others...), len(withPath)
}

// facetsOf returns the bits of the facets that a condition requires of every record.
func (c *compiler) facetsOf(typeName string, condition store.Condition) facetBits {
	var bits facetBits
	switch condition := condition.(type) {
	case store.All:
		for _, part := range condition {
			more := c.facetsOf(typeName, part)
			bits.periods, bits.texts = bits.periods|more.periods, bits.texts|more.texts
		}
	case store.TokenIs:
		if condition.Code != nil && c.index.Extractor.IsFacet(condition.Param) {
			mark := c.index.Hash.FacetMark(c.index.Hash.Param(typeName, condition.Param), condition)
			bits = facetBits{indexrow.FacetBit(mark), indexrow.TextFacetBit(mark)}
		}
	}
	return bits
}

// planner writes the part of a statement that finds the matches of one type. That part is a UNION
// ALL of branches: one for each materialized list, and one for a scan, unless a list is always short.
// Guards are conditions on the lengths of the lists. At run time, they are true in one branch only,
// and the other branches return no rows. Each branch is sorted and ends at the limit, except that
// scanByParam ends each of its two parts at the limit.
type planner struct {
	*compiler
	typeName string
	// predicates and pathCount are results of splitPredicates.
	predicates []predicate
	pathCount  int
	// onlyRid reports whether the branches return rids and ranks, but no other columns.
	onlyRid bool
	order   order.Order
	// after is the position of the last hit on the previous page, or nil for the first page. inclusive
	// reports whether a record at the same position belongs to this page.
	after     *order.Place
	inclusive bool
	// limit is the SQL of the maximum number of rows.
	limit string
	// page is the limit as a number, or 0 if the statement is not for a page.
	page int
	// maxCandidates, if set, is the maximum number of candidates that a scan of a count tests.
	maxCandidates int
	// skipsLongLists reports whether lists that are in the cache of long lists are skipped.
	// skippedLists are the cache keys of the skipped lists, triedLists those of the materialized ones.
	// knownSlow reports whether a scan that replaced a skipped list was slow. listsBefore is the
	// number of materialized lists before the current branch.
	skipsLongLists           bool
	skippedLists, triedLists []uint64
	// onlyFirstList reports whether the branch by the first list that is not skipped is to be the only one.
	// isPartial is as in Page.
	onlyFirstList, isPartial bool
	knownSlow                bool
	listsBefore              int
	// semiJoins maps the index of a predicate to the semi-join with its list.
	semiJoins map[int]semiJoin
}

// semiJoin is a CTE with the rids of a list. If it has limit rows, the list is too long, and each
// candidate is tested instead.
type semiJoin struct{ table, limit string }

// branches returns the UNION ALL of all branches, or of those of a partial page (onlyFirstList).
func (p *planner) branches() (string, error) {
	var branches []string
	var guards []string
	for i := 0; i < min(p.pathCount, maxMaterializedLists); i++ {
		path := p.predicates[i].path
		if i == p.orderPredicate() {
			continue // because the predicate bounds the scan in sort order already
		}
		if i == 0 && p.pathCount == 1 && path.isOrdered && p.order.ByCreation() {
			break // because the scan costs no more than materializing the list
		}
		if path.isInPresent && p.scansPresent() {
			continue // because the scan tests the condition where it would read the list
		}
		t, tried, err := p.materialize(path, p.maxListSize(i))
		if err != nil {
			return "", err
		}
		if !tried {
			continue
		}
		branch, err := p.byList(t, guards, i)
		if err != nil {
			return "", err
		}
		branches = append(branches, branch)
		if path.isShort {
			return strings.Join(branches, " UNION ALL "), nil
		}
		if p.onlyFirstList {
			p.isPartial = true
			return branch + " UNION ALL " + p.ifTooLong(t), nil
		}
		guards = append(guards, t.size()+" >= "+t.limit)
		p.listsBefore++
	}
	scan, err := p.byScan(guards)
	if err != nil {
		return "", err
	}
	return strings.Join(append(branches, scan), " UNION ALL "), nil
}

// orderPredicate returns the index of the predicate that bounds the values of the first sort key,
// or -1 if there is none. With such a predicate, a scan in sort order reads only index entries that
// meet it.
func (p *planner) orderPredicate() int {
	return slices.IndexFunc(p.predicates, func(part predicate) bool {
		switch is := part.condition.(type) {
		case store.SinglePeriodIn:
			return p.order[0].Field == store.SortPeriod && p.order[0].Param == is.Param
		case store.UpdatedIn:
			return p.order[0].Field == store.SortUpdated && part.path != nil
		default:
			return false
		}
	})
}

// hasAccessFilter reports whether records of a type may be hidden from the caller.
func (c *compiler) hasAccessFilter(typeName string) bool {
	return c.access != nil && !store.IsEverything(c.access[typeName])
}

// allowsSemiJoin reports whether a semi-join with the list can replace the test of the condition.
func (path *accessPath) allowsSemiJoin() bool {
	return path != nil && path.list != nil && path.isExact && !path.isShort && path.sizeClass != classFacet && (path.sizeClass < classRelated || path.sizeClass == classPeriod)
}

// semiJoin returns the semi-join with the list of a predicate. It returns false if there is none.
// candidates is the list that has the candidates, or nil if their number is not known.
func (p *planner) semiJoin(predicate int, candidates *materializedList) (t semiJoin, ok bool, err error) {
	path := p.predicates[predicate].path
	if !path.allowsSemiJoin() || p.pathCount < 2 && p.order.ByCreation() {
		return semiJoin{}, false, nil
	}
	t, known := p.semiJoins[predicate]
	if !known {
		from, err := path.list()
		if err != nil {
			return semiJoin{}, false, err
		}
		t = semiJoin{p.name("some"), strconv.Itoa(p.index.Limits.MaxSemiJoinList + 1)}
		if candidates != nil {
			t.limit = candidates.semiJoinLimit(t.limit)
		}
		p.with = append(p.with, t.table+" AS MATERIALIZED (SELECT rid FROM ("+from+") l LIMIT "+t.limit+")")
		if p.semiJoins == nil {
			p.semiJoins = map[int]semiJoin{}
		}
		p.semiJoins[predicate] = t
	}
	return t, true, nil
}

// test returns the test of the predicate on a rid: by the list if it is short enough, and otherwise the
// given one.
func (t semiJoin) test(rid, test string) string {
	return "CASE WHEN " + t.isShort() + " THEN " + rid + " IN (SELECT rid FROM " + t.table + ") ELSE " + test + " END"
}

func (t semiJoin) isShort() string { return "(SELECT count(*) FROM " + t.table + ") < " + t.limit }

// semiJoinTests returns the tests of several predicates on a rid. tests has the test of each that does
// without its list. If there is more than one test, hasOthers included, the tests by lists come first,
// as they cost least.
func semiJoinTests(rid string, lists []semiJoin, tests []string, hasOthers bool) (all []string) {
	if len(lists) == 1 && !hasOthers {
		return []string{lists[0].test(rid, tests[0])}
	}
	for _, list := range lists {
		all = append(all, list.test(rid, always))
	}
	for i, list := range lists {
		all = append(all, "CASE WHEN "+list.isShort()+" THEN TRUE ELSE "+tests[i]+" END")
	}
	return all
}

// tests returns the tests of all predicates and of the access filter. ofRid are tests that need
// only the rid. ofRow are tests that use other columns of the row, named r. ensured is the index of
// the predicate whose access path found the rids, or -1. That predicate is not tested if the path
// is exact.
func (p *planner) tests(rid string, ensured int, candidates *materializedList) (ofRid, ofRow []string, err error) {
	var lists []semiJoin
	var listTests []string
	for i, part := range p.predicates {
		if i == ensured && part.path.isExact {
			continue
		}
		usesRow := false
		test, err := p.test(candidate{typ: p.typeName, rid: rid, row: "r", usesRow: &usesRow}, part.condition)
		if err != nil {
			return nil, nil, err
		}
		hasRow := rid == "r.rid"
		if usesRow && !hasRow && part.path.allowsSemiJoin() {
			// Only the records of the page are read, so the row is looked up for the test alone.
			test, usesRow = exists("(SELECT * FROM res x WHERE x.site = $1 AND x.typ = "+p.Arg(p.typeName)+" AND x.rid = "+rid+" LIMIT 1) r WHERE "+test), false
		}
		if usesRow { // a test of the row at hand costs less than a semi-join
			ofRow = append(ofRow, test)
			continue
		}
		list, ok, err := p.semiJoin(i, candidates)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			lists, listTests = append(lists, list), append(listTests, test)
			continue
		}
		ofRid = append(ofRid, test)
	}
	ofRid = append(semiJoinTests(rid, lists, listTests, len(ofRid) > 0), ofRid...)
	usesRow := false
	visible, err := p.accessFilter(candidate{typ: p.typeName, rid: rid, row: "r", usesRow: &usesRow})
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

// columns returns the columns that a branch returns for each record, before the ranks. The last
// column is the number of lists before this branch that were too long. If onlyRid is true, the rid is
// the only column.
func (p *planner) columns(rid string) string {
	if p.onlyRid {
		return rid
	}
	return p.index.Columns + ", " + strconv.Itoa(p.listsBefore) + "::int2"
}

func (p *planner) direction() string { return direction(p.order.Descends()) }

// afterRid returns conditions on the rid if the order is that of creation, and none otherwise. The
// rid must come after the previous page. If a predicate has an upper bound on the time of update,
// the rid must be below that bound too, because no record is updated before it is created.
func (p *planner) afterRid(rid string) []string {
	if !p.order.ByCreation() {
		return nil
	}
	var where []string
	if p.after != nil {
		where = append(where, rid+afterOperator(p.order.Descends(), p.inclusive)+p.Arg(p.after.Created))
	}
	for _, part := range p.predicates {
		if updated, ok := part.condition.(store.UpdatedIn); ok && !updated.Until.IsZero() {
			where = append(where, rid+" < "+p.Arg(indexrow.RidFloor(time.UnixMilli(CeilMillis(updated.Until)))))
		}
	}
	return where
}

// fromRids returns a branch that tests the rids of driver and reads the records in the order of the
// query. If that is the order of creation, driver must have it. fromRids does not test whether the
// records are live, because access paths find only live ones.
func (p *planner) fromRids(driver string, ensured int, candidates *materializedList) (string, error) {
	ofRid, ofRow, err := p.tests("d.rid", ensured, candidates)
	if err != nil {
		return "", err
	}
	driver = "(" + driver + ") d"
	if len(ofRid) > 0 {
		driver = "(SELECT d.rid FROM " + driver + whereAll(ofRid) + ") d"
	}
	if p.order.ByCreation() {
		if !p.onlyRid || len(ofRow) > 0 {
			driver += p.rowOf()
		}
		return "(SELECT " + p.columns("d.rid") + " FROM " + driver + whereAll(ofRow) + " ORDER BY d.rid " + p.direction() + " LIMIT " + p.limit + ")", nil
	}
	r := p.ranking(p.order, p.typeName, "d.rid", p.after)
	where := ofRow
	if p.after != nil {
		where = append(where, p.afterPlace(&r, p.inclusive))
	}
	if r.usesRow || len(ofRow) > 0 {
		driver += p.rowOf()
		return "(SELECT " + p.columns("d.rid") + ", " + strings.Join(r.columns, ", ") + " FROM " + driver + r.lateral + whereAll(where) +
			" ORDER BY " + r.orderBy() + " LIMIT " + p.limit + ")", nil
	}
	// The rows are joined after the limit, so that only those of the page are read.
	names := rankNames(p.order)
	ranked := "(SELECT d.rid, " + strings.Join(r.columns, ", ") + " FROM " + driver + r.lateral + whereAll(where) + " ORDER BY " + r.orderBy() + " LIMIT " + p.limit + ")"
	from := ranked + " d(rid, " + names + ")"
	if !p.onlyRid {
		from += p.rowOf()
	}
	return "(SELECT " + p.columns("d.rid") + ", " + names + " FROM " + from + ")", nil
}

// byScan returns the branch that reads candidates in sort order and tests each one. guards are the
// conditions that all materialized lists are too long.
func (p *planner) byScan(guards []string) (string, error) {
	if p.maxCandidates > 0 && !p.isCountedInOrder() {
		return p.countedScan(guards)
	}
	if p.limit == "ALL" && !p.isInPresent() {
		if branch, err := p.countedIntersection(guards); err != nil || branch != "" {
			return branch, err
		}
	}
	if path, ensured := p.scanPath(); path != nil && p.order.ByCreation() {
		driver, err := p.scanOf(path, guards)
		if err != nil {
			return "", err
		}
		return p.fromRids(driver, ensured, nil)
	}
	if byParam(p.order) {
		return p.scanByParam(guards)
	}
	return p.fullScan(guards)
}

// scanOf returns the scan of a path under guards.
func (p *planner) scanOf(path *accessPath, guards []string) (string, error) {
	where := ""
	for _, condition := range append(p.afterRid("x.rid"), guards...) {
		where += " AND " + condition
	}
	return path.scan(where, p.direction())
}

// scanPath returns the access path to scan and the index of its predicate, or nil if res is scanned:
// its rows, or the signatures of its records. It returns the path of a facet only if no other
// predicate has a path.
func (p *planner) scanPath() (path *accessPath, predicate int) {
	for i, part := range p.predicates {
		if part.path != nil && part.path.scansSignatures {
			return nil, 0
		}
		if part.path != nil && part.path.scan != nil && (part.path.sizeClass != classFacet || p.pathCount == 1) {
			return part.path, i
		}
	}
	return nil, 0
}

// fullScan returns the branch that tests all records of the type. In the order of creation, it first
// tests their signatures, if the predicates have some (scanSignatures).
func (p *planner) fullScan(guards []string) (string, error) {
	if p.order.ByCreation() && !p.earlier.WideTexts {
		if test := p.signatureTest(); test != "" {
			return p.scanSignatures(test, guards)
		}
	}
	ofRid, ofRow, err := p.tests("r.rid", -1, nil)
	if err != nil {
		return "", err
	}
	where := append([]string{"r.site = $1", "r.typ = " + p.Arg(p.typeName), "NOT r.deleted"}, guards...)
	where = append(append(append(where, p.afterRid("r.rid")...), ofRid...), ofRow...)
	if p.order.ByCreation() {
		return "(SELECT " + p.columns("r.rid") + " FROM res r" + whereAll(where) + " ORDER BY r.rid " + p.direction() + " LIMIT " + p.limit + ")", nil
	}
	r := p.ranking(p.order, p.typeName, "r.rid", p.after)
	if p.after != nil {
		where = append(where, p.afterPlace(&r, p.inclusive))
	}
	return "(SELECT " + p.columns("r.rid") + ", " + strings.Join(r.columns, ", ") + " FROM res r" + r.lateral + whereAll(where) +
		" ORDER BY " + r.orderBy() + " LIMIT " + p.limit + ")", nil
}
