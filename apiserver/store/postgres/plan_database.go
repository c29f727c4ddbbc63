package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// planDatabase implements sqlplan.Database by the site's statistics and its cache of long lists.
type planDatabase struct {
	site *Store
	// from is what ReadNumbers queries: the primary or a replica.
	from querier
	// earlier returns the tables of earlier releases that the database of from has.
	earlier func() indexrow.Earlier
}

var _ sqlplan.Database = planDatabase{}

// Earlier implements sqlplan.Database.
func (d planDatabase) Earlier() indexrow.Earlier { return d.earlier() }

func (d planDatabase) LongList(key uint64) (isSlow, known bool) {
	list, known := d.site.longLists.get(key)
	return list.isSlow, known
}

func (d planDatabase) ReadNumbers(ctx context.Context, sql string, args []any) ([]int64, error) {
	found, err := d.from.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowTo[int64])
}
