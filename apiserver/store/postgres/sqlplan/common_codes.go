package sqlplan

import (
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// Common codes (store.CommonCode) have no rows of their own. They are bits of the column present of res,
// which is in the index of signatures.

// commonBit returns the bit of records that meet a condition on a common code, or 0 for another
// condition. It returns 0 as long as texts are searched in ix_str, because present is in no index then.
func (c *compiler) commonBit(typeName string, is store.TokenIs) int64 {
	if c.earlier.WideTexts {
		return 0
	}
	return indexrow.CommonBit(c.index.Extractor.CommonCodes(typeName), is)
}

// commonPath returns the path of records with one of some common codes.
func (c *compiler) commonPath(typeName string, codes ...store.TokenIs) *accessPath {
	return &accessPath{isExact: true, scansSignatures: true, isInPresent: true, sizeClass: classFacet, list: func() (string, error) {
		return "SELECT x.rid FROM " + c.rowsOfCommonCodes(typeName, codes), nil
	}}
}

// rowsOfCommonCodes returns the SQL to write after FROM, with a WHERE clause, for the rows of res, named
// x, of records with one of some common codes.
func (c *compiler) rowsOfCommonCodes(typeName string, codes []store.TokenIs) string {
	return "res x WHERE x.site = $1 AND x.typ = " + c.Arg(typeName) + " AND NOT x.deleted AND " + c.hasCommonCode("x", typeName, codes)
}

// hasCommonCode returns the test whether a row of res is that of a record with one of some common codes.
// A row that an earlier release wrote lacks the bits of common codes. It is tested by its marks, which are
// not in the index.
func (c *compiler) hasCommonCode(row, typeName string, codes []store.TokenIs) string {
	var bits int64
	for _, is := range codes {
		bits |= c.commonBit(typeName, is)
	}
	marked := c.Arg(c.facetMarks(typeName, codes)) + "::int8[]"
	return "CASE WHEN " + row + ".present < 0 THEN " + c.hasPresence(row, bits, true) +
		" ELSE (SELECT e.marks && " + marked + " FROM res e WHERE e.site = $1 AND e.typ = " + c.Arg(typeName) + " AND e.rid = " + row + ".rid) END"
}

// onlyCommonCodes returns the conditions of grouped alternatives if all are on common codes of one
// parameter.
func onlyCommonCodes(groups []alternativeGroup, rest []store.Condition) (codes []store.TokenIs, ok bool) {
	if len(groups) != 1 || groups[0].kind != commonCodes || len(rest) > 0 {
		return nil, false
	}
	return groups[0].tokenConditions(), true
}

// facetMarks returns the marks of conditions on facets.
func (c *compiler) facetMarks(typeName string, codes []store.TokenIs) []int64 {
	marks := make([]int64, len(codes))
	for i, is := range codes {
		marks[i] = c.index.Hash.FacetMark(c.index.Hash.Param(typeName, is.Param), is)
	}
	return marks
}

// testInPresent returns the test of a condition by the column present of a row of res. ok is false if the
// column does not decide it.
func (c *compiler) testInPresent(row, typeName string, condition store.Condition) (test string, ok bool) {
	if param, isPresent, ok := presenceOf(condition); ok {
		bit := c.presenceBit(typeName, param)
		if bit == 0 {
			return "", false
		}
		return c.hasPresence(row, bit, isPresent), true
	}
	switch condition := condition.(type) {
	case store.TokenIs:
		if c.commonBit(typeName, condition) == 0 {
			return "", false
		}
		return c.hasCommonCode(row, typeName, []store.TokenIs{condition}), true
	case store.Not:
		test, ok = c.testInPresent(row, typeName, condition.Condition)
		return "NOT (" + test + ")", ok
	case store.Any:
		codes, ok := onlyCommonCodes(c.grouped(typeName, condition))
		if !ok {
			return "", false
		}
		return c.hasCommonCode(row, typeName, codes), true
	default:
		return "", false
	}
}

// isInPresent reports whether the column present decides all predicates, and no privacy rule applies. A
// scan of the index of signatures then finds the matches without reading their rows.
func (p *planner) isInPresent() bool {
	before := p.checkpoint()
	defer p.restore(before)
	for _, part := range p.predicates {
		if _, ok := p.testInPresent("x", p.typeName, part.condition); !ok {
			return false
		}
	}
	return len(p.predicates) > 0 && !p.hasAccessFilter(p.typeName)
}

// scansPresent reports whether the branch by scan reads the index of signatures, which has the column
// present.
func (p *planner) scansPresent() bool {
	if p.page == 0 {
		return p.isCountedInOrder()
	}
	scanned, _ := p.scanPath()
	return scanned == nil && p.order.ByCreation()
}
