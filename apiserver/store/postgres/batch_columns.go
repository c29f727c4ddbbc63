package postgres

import (
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// batchColumns are the columns that the new versions of a batch have in res, one element for each
// version.
type batchColumns struct {
	selves, versions, sums, lows []int64
	sigs, sigs2, sigs3, present  []int64
	methods                      []int16
	deleted                      []bool
	labelled                     []int32
	vals, bodies, metadata       [][]byte
	// packed has the marks, labels and links of each version, one version after the other, because
	// Postgres has no arrays of arrays of different lengths. The field is not the column packed.
	// begins are the numbers of elements before each version. marks, labels and ends are the
	// subscripts of the last mark, label and link of each version.
	packed              []int64
	begins              []int32
	marks, labels, ends []int32
}

// versionNames are the names of the columns that unnested returns, in the same order.
const versionNames = "self, ver, ixsum, low, method, deleted, labelled, vals, sig, sig2, sig3, present, body, metadata, n0, n1, n2, n3"

func (s *Store) batchColumns(writes []*pendingWrite) *batchColumns {
	c := &batchColumns{packed: []int64{}}
	for _, w := range writes {
		low := int64(-1)
		if w.Outcome == store.Created {
			low = s.rids.Low()
		}
		c.selves, c.versions, c.sums, c.lows = append(c.selves, w.next.self), append(c.versions, w.next.version), append(c.sums, w.next.sum), append(c.lows, low)
		c.methods, c.deleted = append(c.methods, methodNumber(w.next.method)), append(c.deleted, w.next.deleted)
		c.labelled = append(c.labelled, indexrow.LabelledColumn(w.next.sum))
		c.vals = append(c.vals, nonNilBytes(w.rows.Vals))
		c.sigs, c.sigs2, c.sigs3 = append(c.sigs, w.rows.Signature[0]), append(c.sigs2, w.rows.Signature[1]), append(c.sigs3, w.rows.Signature[2])
		c.present = append(c.present, w.rows.Present)
		c.bodies, c.metadata = append(c.bodies, w.body), append(c.metadata, w.next.metadata.pack())
		c.begins = append(c.begins, int32(len(c.packed)))
		c.packed = append(c.packed, w.rows.Marks...)
		c.marks = append(c.marks, int32(len(c.packed)))
		c.packed = append(c.packed, w.rows.Labels...)
		c.labels = append(c.labels, int32(len(c.packed)))
		c.packed = append(c.packed, w.rows.Links...)
		c.ends = append(c.ends, int32(len(c.packed)))
	}
	return c
}

// unnested returns the arguments of unnest for all columns.
func (c *batchColumns) unnested(st *sqlplan.Statement) string {
	return strings.Join([]string{
		st.Arg(c.selves) + "::int8[]", st.Arg(c.versions) + "::int8[]", st.Arg(c.sums) + "::int8[]", st.Arg(c.lows) + "::int8[]",
		st.Arg(c.methods) + "::int2[]", st.Arg(c.deleted) + "::boolean[]", st.Arg(c.labelled) + "::int4[]",
		st.Arg(c.vals) + "::bytea[]", st.Arg(c.sigs) + "::int8[]", st.Arg(c.sigs2) + "::int8[]", st.Arg(c.sigs3) + "::int8[]", st.Arg(c.present) + "::int8[]",
		st.Arg(c.bodies) + "::bytea[]", st.Arg(c.metadata) + "::bytea[]",
		st.Arg(c.begins) + "::int4[]", st.Arg(c.marks) + "::int4[]", st.Arg(c.labels) + "::int4[]", st.Arg(c.ends) + "::int4[]",
	}, ", ")
}

// hashes returns the SQL of marks, labelled, labels and links.
func (c *batchColumns) hashes(st *sqlplan.Statement) string {
	marks, labels, links := c.arrays(st)
	return marks + ", u.labelled, " + labels + ", " + links
}

// hashesOr is like hashes, but a tombstone gets labelled, labels and links from the columns of table.
func (c *batchColumns) hashesOr(st *sqlplan.Statement, table string) string {
	marks, labels, links := c.arrays(st)
	or := func(column, value string) string {
		return "CASE WHEN u.deleted THEN " + table + "." + column + " ELSE " + value + " END"
	}
	return marks + ", " + or("labelled", "u.labelled") + ", " + or("labels", labels) + ", " + or("links", links)
}

// arrays returns the SQL of marks, labels and links. Empty labels and links are NULL.
func (c *batchColumns) arrays(st *sqlplan.Statement) (marks, labels, links string) {
	packed := "(" + st.Arg(c.packed) + "::int8[])"
	return packed + "[u.n0+1:u.n1]", "NULLIF(" + packed + "[u.n1+1:u.n2], '{}')", "NULLIF(" + packed + "[u.n2+1:u.n3], '{}')"
}
