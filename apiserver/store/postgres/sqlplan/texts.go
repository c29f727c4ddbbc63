package sqlplan

import (
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// textKeys returns the keys under which the texts of a parameter are stored.
func (c *compiler) textKeys(typeName, param string) []int32 {
	return indexrow.TextKeys(typeName, param, c.index.Extractor.Parts(typeName, param))
}

// anyTextKey returns the condition that a row of ix_text, named x, has a text of a parameter.
func (c *compiler) anyTextKey(typeName, param string) string {
	keys := c.textKeys(typeName, param)
	if len(keys) == 1 {
		return "x.key = " + c.Arg(keys[0])
	}
	return "x.key = ANY(" + c.Arg(keys) + "::int4[])"
}

// testText returns the test of a condition on texts, by the column vals of the candidate.
func (c *compiler) testText(n candidate, is store.TextIs) string {
	vals := n.column("vals")
	var parts []string
	for _, key := range c.textKeys(n.typ, is.Param) {
		if is.Match == store.StartsWith && is.Text != "" {
			likely := c.hasSignature(n.row, indexrow.TextSignature(key, is.Text))
			parts = append(parts, "CASE WHEN "+likely+" THEN "+vals+" LIKE "+c.Arg(indexrow.TextPatterns(key, is)[0])+"::bytea ELSE FALSE END")
			continue
		}
		if is.Match == store.Contains {
			parts = append(parts, c.containsText(vals, key, is.Text))
			continue
		}
		for _, pattern := range indexrow.TextPatterns(key, is) {
			parts = append(parts, vals+" LIKE "+c.Arg(pattern)+"::bytea")
		}
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

// containsText returns the test whether a folded text of a key in vals contains another text. The
// texts of a key follow each other.
func (c *compiler) containsText(vals string, key int32, text string) string {
	start, _ := indexrow.TextStart(key, false)
	from := "substring(" + vals + " FROM NULLIF(position(" + c.Arg(start) + "::bytea IN " + vals + "), 0))"
	return "COALESCE((SELECT substring(t.v FROM 1 FOR position(" + c.Arg(indexrow.KeyEnd) + "::bytea IN t.v)) LIKE " +
		c.Arg(indexrow.ContainedPattern(text)) + "::bytea FROM (SELECT " + from + " AS v OFFSET 0) t), FALSE)"
}

// hasText returns the test whether a candidate has a text of a parameter.
func (c *compiler) hasText(n candidate, param string) string {
	vals := n.column("vals")
	var parts []string
	for _, key := range c.textKeys(n.typ, param) {
		parts = append(parts, vals+" LIKE "+c.Arg(indexrow.PresencePattern(key))+"::bytea")
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

// hasTextPrefix returns the test whether a folded text of a candidate begins with one of the prefixes.
func (c *compiler) hasTextPrefix(n candidate, param string, prefixes []string) string {
	var patterns [][]byte
	for _, key := range c.textKeys(n.typ, param) {
		for _, prefix := range prefixes {
			patterns = append(patterns, indexrow.TextPatterns(key, store.TextIs{Match: store.StartsWith, Text: prefix})...)
		}
	}
	return n.column("vals") + " LIKE ANY(" + c.Arg(patterns) + "::bytea[])"
}

// endText returns the SQL of the text by which a row of res, named r, is sorted by a parameter. It is
// NULL if there is none.
func (c *compiler) endText(typeName string, by store.Sort) string {
	var ends []string
	for _, key := range c.textKeys(typeName, by.Param) {
		start, distance := indexrow.TextStart(key, by.Descending)
		ends = append(ends, "(SELECT substring(t.v FROM 1 FOR LEAST(position("+c.Arg(indexrow.TextEnd)+"::bytea IN t.v) - 1, "+
			strconv.Itoa(indexrow.MaxIndexedBytes)+")) FROM (SELECT substring(r.vals FROM NULLIF(position("+c.Arg(start)+"::bytea IN r.vals), 0) + "+
			strconv.Itoa(distance)+") AS v OFFSET 0) t)")
	}
	if len(ends) == 1 {
		return ends[0]
	}
	first := "LEAST("
	if by.Descending {
		first = "GREATEST("
	}
	return first + strings.Join(ends, ", ") + ")"
}

// textForms returns the forms in which the text of a condition may be indexed. For a condition on
// original texts, these are the original text and the folded one.
func (c *compiler) textForms(condition store.TextIs) []string {
	if condition.Match != store.StartsWith {
		if folded := c.index.Extractor.Fold(condition.Text); folded != condition.Text {
			return []string{condition.Text, folded}
		}
	}
	return []string{condition.Text}
}

// textPath returns the path of a condition on texts. Its list is a range of ix_text for each key. If
// that is too long, signatures are scanned in the order of creation (scanSignatures). textPath returns
// nil for store.Contains, and for texts longer than indexrow.MaxIndexedBytes.
func (c *compiler) textPath(typeName string, condition store.TextIs) *accessPath {
	if condition.Match == store.Contains || len(condition.Text) > indexrow.MaxIndexedBytes {
		return nil
	}
	forms := c.textForms(condition)
	facets := c.facets.texts
	return &accessPath{
		isExact: condition.Match == store.StartsWith, scansSignatures: condition.Match == store.StartsWith, sizeClass: classText,
		list: func() (string, error) {
			var parts []string
			for _, form := range forms {
				val := indexrow.IndexedText(form)
				var where string
				if condition.Match == store.Exactly {
					where = "x.val = " + c.Arg([]byte(val))
				} else {
					where = text(c.Statement, store.TextIs{Match: store.StartsWith, Text: val}, true)
				}
				if facets != 0 {
					bits := c.Arg(facets)
					where += " AND (x.facets & " + bits + ") = " + bits
				}
				for _, key := range c.textKeys(typeName, condition.Param) {
					parts = append(parts, "SELECT x.rid FROM ix_text x WHERE x.site = $1 AND x.key = "+c.Arg(key)+" AND "+where)
				}
			}
			return strings.Join(parts, " UNION ALL "), nil
		},
	}
}
