package sqlplan

import (
	"fmt"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store/order"
)

// rankNames returns the names of the columns with a record's ranks in an outer query.
func rankNames(o order.Order) string {
	names := make([]string, len(o))
	for i := range o {
		names[i] = fmt.Sprintf("m%d, n%d, t%d", i, i, i)
	}
	return strings.Join(names, ", ")
}

// byRanks returns the ORDER BY expressions on the columns of rankNames.
func byRanks(o order.Order) string {
	by := ""
	for i, part := range o {
		dir := direction(part.Descending)
		by += fmt.Sprintf("m%d, n%d %s, t%d %s, ", i, i, dir, i, dir)
	}
	return by + "rid " + direction(o.Descends())
}

// PageAfterSkip returns a statement that reads a page and one record more, of all types, after the
// first Query.Skip matches. It reads the rows of the page in res. It reads the skipped matches in the
// indexes only, unless tests or the order need columns of res. The columns are as in Page; the number of
// lists that were too long is 0. Errors: as for Page.
func (s *Search) PageAfterSkip() (sql string, args []any, err error) {
	c := s.compiler()
	dir := direction(s.Order.Descends())
	ranks, by := "", "rid "+dir
	if !s.Order.ByCreation() {
		ranks, by = ", "+rankNames(s.Order), byRanks(s.Order)
	}
	limit := c.Arg(int64(s.Query.Skip) + int64(s.Query.Count) + 1)
	all := make([]string, len(s.Query.Types))
	for i, typeName := range s.Query.Types {
		plan := s.planner(c, typeName)
		plan.limit, plan.onlyRid = limit, true
		branches, err := plan.branches()
		if err != nil {
			return "", nil, err
		}
		all[i] = "SELECT " + c.Arg(typeName) + "::text, b.* FROM (" + branches + ") b"
	}
	page := "SELECT * FROM (" + strings.Join(all, " UNION ALL ") + ") p(typ, rid" + ranks + ") ORDER BY " + by + ", typ " + dir +
		" LIMIT " + c.Arg(s.Query.Count+1) + " OFFSET " + c.Arg(s.Query.Skip)
	return c.sql("SELECT " + s.Index.Columns + ", 0::int2" + ranks + " FROM (" + page +
		") p CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.typ = p.typ AND x.rid = p.rid LIMIT 1) r"), c.Args, c.fits()
}
