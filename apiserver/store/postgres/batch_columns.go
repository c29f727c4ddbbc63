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
	n, packed := len(writes), 0
	for _, w := range writes {
		packed += len(w.rows.Marks) + len(w.rows.Labels) + len(w.rows.Links)
	}
	c := &batchColumns{
		selves: make([]int64, n), versions: make([]int64, n), sums: make([]int64, n), lows: make([]int64, n),
		sigs: make([]int64, n), sigs2: make([]int64, n), sigs3: make([]int64, n), present: make([]int64, n),
		methods: make([]int16, n), deleted: make([]bool, n), labelled: make([]int32, n),
		vals: make([][]byte, n), bodies: make([][]byte, n), metadata: make([][]byte, n),
		packed: make([]int64, 0, packed), begins: make([]int32, n), marks: make([]int32, n), labels: make([]int32, n), ends: make([]int32, n),
	}
	for i, w := range writes {
		c.lows[i] = -1
		if w.Outcome == store.Created {
			c.lows[i] = s.rids.Low()
		}
		c.selves[i], c.versions[i], c.sums[i] = w.next.self, w.next.version, w.next.sum
		c.methods[i], c.deleted[i], c.labelled[i] = methodNumber(w.next.method), w.next.deleted, indexrow.LabelledColumn(w.next.sum)
		c.sigs[i], c.sigs2[i], c.sigs3[i] = w.rows.Signature[0], w.rows.Signature[1], w.rows.Signature[2]
		c.vals[i], c.present[i] = nonNilBytes(w.rows.Vals), w.rows.Present
		c.bodies[i], c.metadata[i] = w.body, w.next.metadata.pack()
		c.begins[i] = int32(len(c.packed))
		c.packed = append(c.packed, w.rows.Marks...)
		c.marks[i] = int32(len(c.packed))
		c.packed = append(c.packed, w.rows.Labels...)
		c.labels[i] = int32(len(c.packed))
		c.packed = append(c.packed, w.rows.Links...)
		c.ends[i] = int32(len(c.packed))
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
