package sqlplan

import (
	"maps"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// ReferredTo returns a statement that reads the records whose selves are in targets, if they are
// live, visible, and not in onPage. It reads at most limit records, in the order of type and id.
// The columns are Index.Columns. Errors: as for Page.
func (s *Search) ReferredTo(targets, onPage []int64, limit int) (sql string, args []any, err error) {
	c := s.compiler()
	return s.selectVisible(c, "unnest("+c.Arg(targets)+"::int8[]) s(self) CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.self = s.self LIMIT 1) r",
		onPage, limit)
}

// Referring is like ReferredTo, but reads the records that refer to records whose self is in selves,
// by the type and the parameter of the include. Without a type or a parameter, it needs ReferencePaths.
func (s *Search) Referring(include store.Include, selves, onPage []int64, limit int) (sql string, args []any, err error) {
	c := s.compiler()
	var keys []int64
	if include.Type != "" && include.Param != "" {
		keys = []int64{s.Index.Hash.Param(include.Type, include.Param)}
	} else {
		keys = paramKeys(s.Index.Hash, s.ReferencePaths, func(p indexrow.ReferencePath) bool {
			return (include.Type == "" || include.Type == p.Type) && (include.Param == "" || include.Param == p.Param)
		})
	}
	rids := "(SELECT DISTINCT x.rid FROM unnest(" + c.Arg(selves) + "::int8[]) s(self) CROSS JOIN LATERAL " +
		"(SELECT f.rid FROM ix_ref f WHERE f.site = $1 AND f.tgt = s.self AND f.key = ANY(" + c.Arg(keys) + "::int8[]) AND f.base = ANY(" + c.bases() + ")" + fence + ") x) f"
	return s.selectVisible(c, rids+" CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.typ = ANY("+
		c.Arg(s.referringTypes(include))+"::text[]) AND x.rid = f.rid LIMIT 1) r", onPage, limit)
}

// referringTypes returns the types that the referring records of an include can have.
func (s *Search) referringTypes(include store.Include) []string {
	if include.Type != "" {
		return []string{include.Type}
	}
	types := []string{}
	for _, p := range s.ReferencePaths {
		types = append(types, p.Type)
	}
	return slices.Compact(types)
}

// selectVisible returns a statement that selects those rows of from, named r, that are live,
// visible and not in onPage.
func (s *Search) selectVisible(c *compiler, from string, onPage []int64, limit int) (sql string, args []any, err error) {
	visible := always
	if s.Query.Access != nil {
		var parts []string
		for _, typeName := range slices.Sorted(maps.Keys(s.Query.Access)) {
			part, err := c.accessFilter(candidateRow(typeName, "r"))
			if err != nil {
				return "", nil, err
			}
			parts = append(parts, "(r.typ = "+c.Arg(typeName)+" AND "+part+")")
		}
		visible = never
		if len(parts) > 0 {
			visible = "(" + strings.Join(parts, " OR ") + ")"
		}
	}
	return c.sql("SELECT " + s.Index.Columns + " FROM " + from + " WHERE NOT r.deleted AND NOT r.self = ANY(" + c.Arg(onPage) + "::int8[]) AND " + visible +
		" ORDER BY r.typ, r.id LIMIT " + c.Arg(limit)), c.Args, c.fits()
}
