package postgres

import (
	"fmt"
	"strings"
)

// byRid reports whether pages are read by the order of rids alone.
func (r *reader) byRid() bool { return r.order.byCreation() && r.query.Skip == 0 }

// placesBehind reads the places of a page behind those that are skipped, and one more if
// there is one. Of what is skipped only the places are looked at, not the bodies.
func (r *reader) placesBehind() ([]place, error) {
	c := r.compiler()
	limit := c.arg(int64(r.query.Skip) + int64(r.query.Count) + 1)
	all := make([]string, 0, len(r.query.Types))
	for _, typeName := range r.query.Types {
		s := r.source(c, typeName)
		s.columns, s.limit = "r.typ, r.id, r.self", limit
		branches, err := s.branches()
		if err != nil {
			return nil, err
		}
		all = append(all, "("+branches+")")
	}
	if len(all) == 0 {
		return nil, nil
	}
	ranks, by := make([]string, 0, 3*len(r.order)), make([]string, 0, 3*len(r.order)+2)
	for i, part := range r.order {
		rank := []string{fmt.Sprint("m", i), fmt.Sprint("n", i), fmt.Sprint("t", i)}
		ranks = append(ranks, rank...)
		by = append(by, rank[0], rank[1]+" "+direction(part.Descending), rank[2]+" "+direction(part.Descending))
	}
	last := direction(r.order.descends())
	by = append(by, "id "+last, "typ "+last)
	list := strings.Join(ranks, ", ")
	page := "SELECT * FROM (" + strings.Join(all, " UNION ALL ") + ") p(typ, id, self, " + list + ") ORDER BY " + strings.Join(by, ", ") +
		" LIMIT " + c.arg(r.query.Count+1) + " OFFSET " + c.arg(r.query.Skip)
	if err := c.fits(); err != nil {
		return nil, err
	}
	rows, err := r.site.pool.Query(r.ctx, c.sql("SELECT "+stateColumns+", "+list+" FROM ("+page+
		") p CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.self = p.self LIMIT 1) r"), c.args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var places []place
	for rows.Next() {
		at, err := r.scanPlace(rows)
		if err != nil {
			return nil, err
		}
		places = append(places, at)
	}
	return places, rows.Err()
}
