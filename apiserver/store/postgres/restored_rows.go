package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// versionLabels are the labels and links of a version. known is false if they cannot be found out,
// as those of a tombstone without the version before it.
type versionLabels struct {
	labels, links []int64
	known         bool
}

// restoredRows are the rows of restored records, by table.
type restoredRows struct {
	records, past, claims [][]any
	rids                  []int64
	index                 []indexrow.Rows
}

// The columns of the rows. keyColumns are those of recordColumns that identify the record.
var (
	keyColumns    = []string{"site", "typ", "id", "spelling", "self"}
	recordColumns = []string{"site", "typ", "id", "spelling", "rid", "self", "ver", "upd", "ixsum", "method", "deleted", "marks", "labelled", "labels", "links", "vals", "sig", "sig2", "sig3", "present", "packed", "claims", "body", "metadata"}
	pastColumns   = []string{"site", "typ", "self", "ver", "rid", "upd", "until", "method", "deleted", "labelled", "labels", "links", "body"}
	claimColumns  = []string{"site", "line", "self", "lo", "hi", "expires"}
)

// recordRow returns the row of the newest version of a record, with the values of recordColumns.
func recordRow(site int32, at *state, rows *indexrow.Rows, labels versionLabels) []any {
	var labelled *int32
	if labels.known {
		column := indexrow.LabelledColumn(at.sum)
		labelled = &column
	}
	return []any{
		site, at.key.Type, at.id, spelling(at), at.rid, at.self, at.version, at.updated.UnixMilli(), at.sum, methodNumber(at.method), at.deleted,
		nonNil(rows.Marks), labelled, labels.labels, labels.links, nonNilBytes(rows.Vals), rows.Signature[0], rows.Signature[1], rows.Signature[2], rows.Present, packedColumn(at), packClaims(at.claims), packState(at), at.metadata.pack(),
	}
}

// addPast adds the row of a superseded version.
func (r *restoredRows) addPast(site int32, at *state, until time.Time, labels versionLabels) {
	var labelled *int32
	if labels.known {
		labelled = new(int32) // superseded versions have no ixsum to compare it with
	}
	r.past = append(r.past, []any{
		site, at.key.Type, at.self, at.version, at.rid, at.updated.UnixMilli(), until.UnixMilli(), methodNumber(at.method), at.deleted,
		labelled, labels.labels, labels.links, packState(at),
	})
}

// copy stores the rows. It locks res first, as every writer does.
func (r *restoredRows) copy(ctx context.Context, tx pgx.Tx, site int32) error {
	tables := []indexrow.CopiedRows{
		{Table: "res", Columns: recordColumns, Rows: r.records}, {Table: "hist", Columns: pastColumns, Rows: r.past}, {Table: "claim", Columns: claimColumns, Rows: r.claims},
	}
	return copyTables(ctx, tx, append(tables, indexrow.CopyRows(site, r.rids, r.index)...))
}
