package sqlplan

import (
	"math"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// isCountedInOrder reports whether the scan of a page is best for a count, too: each index entry is a
// match, or only the access filter is tested, or the index has what decides.
func (p *planner) isCountedInOrder() bool {
	return len(p.predicates) == 0 || p.scansMatches() && !p.hasAccessFilter(p.typeName) || p.isInPresent()
}

// countedScan returns the branch by scan of a count that tests at most p.maxCandidates candidates. If
// there are more, it returns more rows than that.
func (p *planner) countedScan(guards []string) (string, error) {
	driver, ensured, err := p.countedCandidates(guards)
	if err != nil {
		return "", err
	}
	scanned, most := p.name("scanned"), strconv.Itoa(p.maxCandidates)
	p.with = append(p.with, scanned+" AS MATERIALIZED (SELECT rid FROM ("+driver+") l LIMIT "+most+" + 1)")
	matches, err := p.countedMatches(scanned, ensured)
	return matches + " UNION ALL (SELECT rid FROM " + scanned + " WHERE (SELECT count(*) FROM " + scanned + ") > " + most + ")", err
}

// countedMatches returns a branch with the matches among the rids of a table, in any order. ensured is as
// in tests.
func (p *planner) countedMatches(table string, ensured int) (string, error) {
	ofRid, ofRow, err := p.tests("d.rid", ensured, nil)
	if err != nil {
		return "", err
	}
	from := table + " d"
	if len(ofRid) > 0 {
		from = "(SELECT d.rid FROM " + from + whereAll(ofRid) + ") d"
	}
	if len(ofRow) > 0 {
		from += p.rowOf()
	}
	return "(SELECT d.rid FROM " + from + whereAll(ofRow) + " LIMIT " + p.limit + ")", nil
}

// countedCandidates returns SQL that selects the rids of the candidates of a count, and the index of the
// predicate that has found them, or -1.
func (p *planner) countedCandidates(guards []string) (driver string, ensured int, err error) {
	if path, ensured := p.scanPath(); path != nil {
		driver, err = p.scanOf(path, guards)
		return driver, ensured, err
	}
	where := append([]string{"x.site = $1", "x.typ = " + p.Arg(p.typeName), "NOT x.deleted"}, guards...)
	where = append(where, p.afterRid("x.rid")...)
	if !p.earlier.WideTexts {
		if test := p.signatureTest(); test != "" {
			where = append(where, test)
		}
	}
	return "SELECT x.rid FROM res x" + whereAll(where), -1, nil
}

// maxIntersected is the number of records of a type up to which a count intersects lists. The first list
// is kept in memory, some 60 bytes for each rid.
const maxIntersected = 500_000

// countedIntersection returns the branch by scan of a count without limits. It intersects the lists of
// the predicates and tests the other predicates, and those whose list is not exact. It returns "" if
// there are fewer than two lists, or too many records. A type whose number of records is not known yet
// has few.
func (p *planner) countedIntersection(guards []string) (string, error) {
	if records := p.index.Database.RecordCount(p.ctx, p.typeName); records > maxIntersected && !math.IsInf(records, 1) {
		return "", nil
	}
	before, rest := p.checkpoint(), *p
	rest.predicates, rest.pathCount = nil, 0
	var meeting, others []string
	for _, part := range p.predicates {
		into, path := &meeting, part.path
		if not, ok := part.condition.(store.Not); ok {
			into, path = &others, p.accessPath(p.typeName, not.Condition)
		}
		isExcluded := into == &others
		if path == nil || path.list == nil || path.sizeClass == classPresence || isExcluded && !path.isExact {
			rest.predicates = append(rest.predicates, part)
			continue
		}
		if !path.isExact { // the list has candidates that do not match
			rest.predicates = append(rest.predicates, part)
		}
		list, err := path.list()
		if err != nil {
			return "", err
		}
		*into = append(*into, "SELECT rid FROM ("+list+") l")
	}
	if len(meeting)+len(others) < 2 {
		p.restore(before)
		return "", nil
	}
	if len(meeting) == 0 {
		meeting = []string{"SELECT x.rid FROM res x WHERE x.site = $1 AND x.typ = " + p.Arg(p.typeName) + " AND NOT x.deleted"}
	}
	driver := "(" + strings.Join(meeting, " INTERSECT ") + ")"
	for _, list := range others {
		driver = "(" + driver + " EXCEPT " + list + ")"
	}
	return rest.countedMatches("(SELECT rid FROM "+driver+" l"+whereAll(append(rest.afterRid("rid"), guards...))+")", -1)
}
