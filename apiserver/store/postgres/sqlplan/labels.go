package sqlplan

import (
	"strconv"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// labelNames returns the labels of conditions if each of them is a HasLabel, and otherwise false.
func labelNames(conditions []store.Condition) (names []string, all bool) {
	for _, condition := range conditions {
		label, ok := condition.(store.HasLabel)
		if !ok {
			return nil, false
		}
		names = append(names, string(label))
	}
	return names, len(names) > 0
}

// hasCurrentLabels returns the test whether the stored labels are those of the candidate's version.
// An older release may have written the version without labels.
func (n candidate) hasCurrentLabels() string {
	if n.isPast {
		return n.column("labelled") + " IS NOT NULL"
	}
	return "(" + n.column("ixsum") + " & 2147483647) = " + n.column("labelled")
}

// hasAnyLabel returns the test whether a candidate has one of several labels. The test is NULL,
// also if it is negated, as long as the labels of the candidate are not known.
func (c *compiler) hasAnyLabel(n candidate, names []string) string {
	hashes := make([]int64, len(names))
	for i, name := range names {
		hashes[i] = c.index.Hash.Label(name)
	}
	var test string
	if len(hashes) == 1 {
		test = c.Arg(hashes[0]) + " = ANY(" + n.column("labels") + ")"
	} else {
		test = c.Arg(hashes) + "::int8[] && " + n.column("labels")
	}
	return "CASE WHEN " + n.hasCurrentLabels() + " THEN COALESCE(" + test + ", FALSE) END"
}

// linksTo returns the test of a store.LinksTo on a candidate. The test is NULL as long as the links
// of the candidate are not known.
func (c *compiler) linksTo(n candidate, condition store.LinksTo) (string, error) {
	i, t := c.name("i"), c.name("t")
	where, err := c.testUnfiltered(candidateRow(condition.Type, t), condition.Where)
	if err != nil {
		return "", err
	}
	links := n.column("links")
	broken := exists("generate_series(1, COALESCE(array_length(" + links + ", 1), 0), " + strconv.Itoa(indexrow.LinkWidth) + ") " + i +
		" WHERE " + links + "[" + i + "] = " + c.key(n.typ, condition.Param) + " AND " + links + "[" + i + " + 2] = ANY(" + c.bases() + ")" +
		" AND (SELECT TRUE FROM res " + t + " WHERE " + t + ".site = $1 AND " + t + ".self = " + links + "[" + i + " + 1] AND " +
		t + ".typ = " + c.Arg(condition.Type) + " AND NOT " + t + ".deleted AND " + where + " LIMIT 1) IS NULL")
	return "CASE WHEN " + n.hasCurrentLabels() + " THEN NOT " + broken + " END", nil
}
