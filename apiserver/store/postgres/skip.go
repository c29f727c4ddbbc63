package postgres

import (
	"fmt"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store/order"
)

// rankNames are the names that the ranks of a record have where they are read on.
func rankNames(o order.Order) string {
	names := make([]string, len(o))
	for i := range o {
		names[i] = fmt.Sprintf("m%d, n%d, t%d", i, i, i)
	}
	return strings.Join(names, ", ")
}

// byRanks orders by these names.
func byRanks(o order.Order) string {
	by := ""
	for i, part := range o {
		way := direction(part.Descending)
		by += fmt.Sprintf("m%d, n%d %s, t%d %s, ", i, i, way, i, way)
	}
	return by + "rid " + direction(o.Descends())
}

// askBehind reads the places of a page behind those that are skipped, and one more if
// there is one. What is skipped is walked in the indexes: only the rows of the page are read.
func (r *reader) askBehind(into *fetched) error {
	if len(r.query.Types) == 0 {
		return nil
	}
	c := r.compiler()
	way := direction(r.order.Descends())
	ranks, by := "", "rid "+way
	if !r.order.ByCreation() {
		ranks, by = ", "+rankNames(r.order), byRanks(r.order)
	}
	limit := c.arg(int64(r.query.Skip) + int64(r.query.Count) + 1)
	all := make([]string, len(r.query.Types))
	for i, typeName := range r.query.Types {
		s := r.source(c, typeName)
		s.limit, s.onlyRid = limit, true
		branches, err := s.branches()
		if err != nil {
			return err
		}
		all[i] = "SELECT " + c.arg(typeName) + "::text, b.* FROM (" + branches + ") b"
	}
	page := "SELECT * FROM (" + strings.Join(all, " UNION ALL ") + ") p(typ, rid" + ranks + ") ORDER BY " + by + ", typ " + way +
		" LIMIT " + c.arg(r.query.Count+1) + " OFFSET " + c.arg(r.query.Skip)
	if err := c.fits(); err != nil {
		return err
	}
	if err := r.takeSession(); err != nil {
		return err
	}
	rows, err := r.site.pool.Query(r.ctx, c.sql("SELECT "+stateColumns+", 0::int2"+ranks+" FROM ("+page+
		") p CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.typ = p.typ AND x.rid = p.rid LIMIT 1) r"), c.args...)
	if err != nil {
		return err
	}
	return into.take(rows)
}
