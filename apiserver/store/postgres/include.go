package postgres

import (
	"cmp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
)

// learnPaths reads which parameters lead where, if the query does not say it.
func (r *reader) learnPaths() error {
	asked := func(typeName string) bool { return wantsPaths(r.query.WhereOf(typeName)) }
	if !slices.ContainsFunc(r.query.Types, asked) && !slices.ContainsFunc(r.query.Includes, func(i store.Include) bool {
		return i.Reverse && (i.Type == "" || i.Param == "")
	}) {
		for _, condition := range r.query.Access {
			if wantsPaths(condition) {
				return r.readPaths()
			}
		}
		return nil
	}
	return r.readPaths()
}

func (r *reader) readPaths() error {
	found, err := r.site.pool.Query(r.ctx, `SELECT typ, param, target FROM ix_path WHERE site = $1 ORDER BY typ, param, target`, r.site.site)
	if err != nil {
		return err
	}
	r.paths, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (p path, err error) {
		err = row.Scan(&p.typ, &p.param, &p.target)
		return p, err
	})
	return err
}

// wantsPaths reports whether a condition leaves open by which parameter, or to which type,
// records refer.
func wantsPaths(condition store.Condition) bool {
	switch condition := condition.(type) {
	case store.All:
		return slices.ContainsFunc(condition, wantsPaths)
	case store.Any:
		return slices.ContainsFunc(condition, wantsPaths)
	case store.Not:
		return wantsPaths(condition.Condition)
	case store.RefersToID:
		return len(condition.Types) == 0
	case store.Chain:
		return condition.Param == "" || wantsPaths(condition.Where)
	case store.ReferredBy:
		return condition.Param == "" || wantsPaths(condition.Where)
	default:
		return false
	}
}

// include puts the records on a page that its query's includes ask for.
func (r *reader) include(matches []place, page *store.Page) error {
	if len(r.query.Includes) == 0 || len(matches) == 0 {
		return nil
	}
	i := inclusion{reader: r, page: page}
	from := make([]*state, len(matches))
	for n, at := range matches {
		from[n] = at.at
		i.known = append(i.known, at.at.self)
	}
	for depth := 0; len(from) > 0; depth++ {
		found, err := i.round(from, depth)
		if err != nil {
			return err
		}
		for _, at := range found {
			if len(page.Included) == r.query.MaxIncluded {
				page.IncludedCut = true
				return nil
			}
			i.known = append(i.known, at.self)
			page.Included = append(page.Included, r.site.record(at))
		}
		if i.full {
			page.IncludedCut = true
			return nil
		}
		from = found
	}
	return nil
}

// inclusion is the includes of a page on their way.
type inclusion struct {
	*reader
	page *store.Page
	// size is that of the bodies of what is included; full tells that no more fit on the page.
	size int
	full bool
	// known are the records that are on the page.
	known []int64
}

// round finds what the includes lead to from some records, in the order of type and id, and
// no more of it than one beyond the bound.
func (i *inclusion) round(from []*state, depth int) ([]*state, error) {
	batch := &pgx.Batch{}
	found := map[int64]*state{}
	take := func(rows pgx.Rows) error {
		for rows.Next() {
			at, err := scanState(columnsOf(rows))
			if err != nil {
				return err
			}
			if i.size += len(at.body.JSON); i.size > i.site.mostOnPage {
				i.full = true
				return nil
			}
			found[at.self] = at
		}
		return rows.Err()
	}
	for _, include := range i.query.Includes {
		if depth > 0 && !include.Iterate {
			continue
		}
		c := i.compiler()
		sql := ""
		var err error
		if include.Reverse {
			sql, err = i.referring(c, include, from)
		} else {
			sql, err = i.referredTo(c, include, from)
		}
		if err == nil {
			err = c.fits()
		}
		if err != nil {
			return nil, err
		}
		if sql != "" {
			batch.Queue(c.sql(sql), c.args...).Query(take)
		}
	}
	if batch.Len() == 0 {
		return nil, nil
	}
	if err := i.takeSession(); err != nil {
		return nil, err
	}
	if err := i.site.pool.SendBatch(i.ctx, batch).Close(); err != nil {
		return nil, err
	}
	ordered := make([]*state, 0, len(found))
	for _, at := range found {
		ordered = append(ordered, at)
	}
	slices.SortFunc(ordered, func(a, b *state) int { return compareKeys(foldKey(a.key), foldKey(b.key)) })
	return ordered, nil
}

// referredTo selects the records that others refer to, as their bodies say.
func (i *inclusion) referredTo(c *compiler, include store.Include, from []*state) (string, error) {
	var targets []int64
	for _, at := range from {
		if include.Type != "" && include.Type != at.key.Type {
			continue
		}
		for _, entry := range i.site.index.references(at.key.Type, at.body.JSON) {
			reference, ok := entry.Value.(store.Reference)
			if !ok || include.Param != "" && include.Param != entry.Param {
				continue
			}
			if to, local := reference.Local(i.query.Bases); local && (include.Target == "" || include.Target == to.Type) {
				targets = append(targets, i.site.hash.self(to.Type, to.ID))
			}
		}
	}
	slices.Sort(targets)
	targets = slices.Compact(targets)
	if len(targets) == 0 {
		return "", nil
	}
	return i.selectSelves(c, "unnest("+c.arg(targets)+"::int8[]) s(self)")
}

// referring selects the records that refer to others.
func (i *inclusion) referring(c *compiler, include store.Include, to []*state) (string, error) {
	var selves []int64
	for _, at := range to {
		if include.Target == "" || include.Target == at.key.Type {
			selves = append(selves, at.self)
		}
	}
	if len(selves) == 0 {
		return "", nil
	}
	var keys []int64
	if include.Type != "" && include.Param != "" {
		keys = []int64{i.site.hash.param(include.Type, include.Param)}
	} else {
		keys = i.site.hash.keysOf(i.paths, func(p path) bool {
			return (include.Type == "" || include.Type == p.typ) && (include.Param == "" || include.Param == p.param)
		})
	}
	rids := "(SELECT DISTINCT x.rid FROM ix_ref x WHERE x.site = $1 AND x.tgt = ANY(" + c.arg(selves) + "::int8[]) AND x.key = ANY(" +
		c.arg(keys) + "::int8[]) AND x.base = ANY(" + c.bases() + ")) f"
	return i.selectVisible(c, rids+" CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.typ = ANY("+
		c.arg(i.types(include))+"::text[]) AND x.rid = f.rid LIMIT 1) r")
}

// types are those that referring records can have.
func (i *inclusion) types(include store.Include) []string {
	if include.Type != "" {
		return []string{include.Type}
	}
	types := []string{}
	for _, p := range i.paths {
		types = append(types, p.typ)
	}
	return slices.Compact(types)
}

func (i *inclusion) selectSelves(c *compiler, selves string) (string, error) {
	return i.selectVisible(c, selves+" CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.self = s.self LIMIT 1) r")
}

// selectVisible selects the live rows, named r, that the query may meet and that are not on
// the page yet.
func (i *inclusion) selectVisible(c *compiler, from string) (string, error) {
	visible := always
	if i.query.Access != nil {
		var parts []string
		types := make([]string, 0, len(i.query.Access))
		for typeName := range i.query.Access {
			types = append(types, typeName)
		}
		slices.Sort(types)
		for _, typeName := range types {
			part, err := c.visible(inner(typeName, "r"))
			if err != nil {
				return "", err
			}
			parts = append(parts, "(r.typ = "+c.arg(typeName)+" AND "+part+")")
		}
		visible = never
		if len(parts) > 0 {
			visible = "(" + strings.Join(parts, " OR ") + ")"
		}
	}
	left := i.query.MaxIncluded - len(i.page.Included) + 1
	return "SELECT " + stateColumns + " FROM " + from + " WHERE NOT r.deleted AND NOT r.self = ANY(" + c.arg(i.known) + "::int8[]) AND " + visible +
		" ORDER BY r.typ, r.id LIMIT " + c.arg(left), nil
}

func compareKeys(a, b store.Key) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
}
