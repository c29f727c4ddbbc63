package sqlplan

import (
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// presenceBit returns the bit of a parameter in the column present, or 0 if it has none. It has none as
// long as earlier releases, which do not know the column, may write records.
func (c *compiler) presenceBit(typeName, param string) int64 {
	if c.earlier.WideTexts {
		return 0
	}
	return indexrow.PresenceBit(c.index.Extractor.Ordinal(typeName, param))
}

// hasPresence returns the test whether a row of res, named row, has the bit of a parameter, or lacks it.
func (c *compiler) hasPresence(row string, bit int64, isPresent bool) string {
	if isPresent {
		return "(" + row + ".present & " + c.Arg(bit) + ") <> 0"
	}
	return "(" + row + ".present & " + c.Arg(bit) + ") = 0"
}

// testPresent returns the test whether a candidate has a parameter.
func (c *compiler) testPresent(n candidate, param string) string {
	if bit := c.presenceBit(n.typ, param); bit != 0 {
		*n.usesRow = true
		return c.hasPresence(n.row, bit, true)
	}
	test := c.key(n.typ, param) + " = ANY(" + n.column("marks") + ")"
	if c.earlier.WideTexts { // once ix_str is gone, marks lack parameters with a bit, and this statement fails
		return "(" + test + " AND NOT EXISTS (SELECT FROM ix_str WHERE FALSE))"
	}
	return test
}

// presencePath returns the path of records with a parameter, or of those without it. Its list is read
// from the index of res in the order of creation, which has the column present. It returns nil if the
// parameter has no bit there, and for related records.
func (c *compiler) presencePath(typeName, param string, isPresent bool) *accessPath {
	bit := c.presenceBit(typeName, param)
	if bit == 0 || c.isRelated { // a list of related records has no limit, and most may be in it
		return nil
	}
	return &accessPath{isExact: true, isInPresent: true, sizeClass: classPresence, list: func() (string, error) {
		return "SELECT x.rid FROM res x WHERE x.site = $1 AND x.typ = " + c.Arg(typeName) + " AND NOT x.deleted AND " + c.hasPresence("x", bit, isPresent), nil
	}}
}

// presenceOf returns the parameter that a condition requires a record to have, or to lack.
func presenceOf(condition store.Condition) (param string, isPresent, ok bool) {
	not, isNot := condition.(store.Not)
	if isNot {
		condition = not.Condition
	}
	present, ok := condition.(store.Present)
	return present.Param, !isNot, ok
}
