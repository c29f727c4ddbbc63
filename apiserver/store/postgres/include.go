package postgres

import (
	"cmp"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// loadReferencePaths reads the site's reference paths if the search needs them.
func (r *searcher) loadReferencePaths() error {
	if !r.NeedsReferencePaths() {
		return nil
	}
	found, err := r.from.Query(r.Context, `SELECT typ, param, target FROM ix_path WHERE site = $1 ORDER BY typ, param, target`, r.site.site)
	if err != nil {
		return err
	}
	r.ReferencePaths, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (p indexrow.ReferencePath, err error) {
		err = row.Scan(&p.Type, &p.Param, &p.Target)
		return p, err
	})
	return err
}

// include adds the records of the query's includes to a page, at most Query.MaxIncluded, and not more
// bodies than the maximum size of a page. It sets page.IncludedCut if records were left out.
func (r *searcher) include(matches []hit, page *store.Page) error {
	if len(r.Query.Includes) == 0 || len(matches) == 0 {
		return nil
	}
	i := inclusion{searcher: r, page: page}
	from := make([]*state, len(matches))
	for n, at := range matches {
		from[n] = at.state
		i.onPage = append(i.onPage, at.state.self)
	}
	for depth := 0; len(from) > 0; depth++ {
		found, err := i.readRound(from, depth)
		if err != nil {
			return err
		}
		for _, at := range found {
			if len(page.Included) == r.Query.MaxIncluded {
				page.IncludedCut = true
				return nil
			}
			i.onPage = append(i.onPage, at.self)
			page.Included = append(page.Included, r.site.record(at))
		}
		if i.isTruncated {
			page.IncludedCut = true
			return nil
		}
		from = found
	}
	return nil
}

type inclusion struct {
	*searcher
	page *store.Page
	// size is the length of the included bodies in bytes. isTruncated reports whether records were
	// left out because the page would have exceeded its maximum size.
	size        int
	isTruncated bool
	onPage      []int64
}

// readRound returns the records that the includes select for the records in from, in the order of
// type and id. At depth 0 all includes apply, at greater depths only those with Iterate. For each
// include, it reads at most one record more than the page has space for.
func (i *inclusion) readRound(from []*state, depth int) ([]*state, error) {
	batch := &pgx.Batch{}
	found := map[int64]*state{}
	take := func(rows pgx.Rows) error {
		for rows.Next() {
			at, err := scanState(columnsOf(rows))
			if err != nil {
				return err
			}
			if i.size += len(at.body.JSON); i.size > i.site.maxPageBytes {
				i.isTruncated = true
				return nil
			}
			found[at.self] = at
		}
		return rows.Err()
	}
	for _, include := range i.Query.Includes {
		if depth > 0 && !include.Iterate {
			continue
		}
		statement := i.referredTo
		if include.Reverse {
			statement = i.referring
		}
		sql, args, err := statement(include, from)
		if err != nil {
			return nil, err
		}
		if sql != "" {
			batch.Queue(sql, args...).Query(take)
		}
	}
	if batch.Len() == 0 {
		return nil, nil
	}
	if err := i.takeSession(); err != nil {
		return nil, err
	}
	if err := i.from.SendBatch(i.Context, batch).Close(); err != nil {
		return nil, err
	}
	ordered := make([]*state, 0, len(found))
	for _, at := range found {
		ordered = append(ordered, at)
	}
	slices.SortFunc(ordered, func(a, b *state) int { return a.key.Compare(b.key) })
	return ordered, nil
}

// referredTo returns the statement that selects the records to which the bodies of from refer. sql is
// "" if the bodies have no such reference.
func (i *inclusion) referredTo(include store.Include, from []*state) (sql string, args []any, err error) {
	var targets []int64
	for _, at := range from {
		if include.Type != "" && include.Type != at.key.Type {
			continue
		}
		for _, entry := range i.site.index.Extractor.References(at.key.Type, at.body.JSON) {
			reference, ok := entry.Value.(store.Reference)
			if !ok || include.Param != "" && include.Param != entry.Param {
				continue
			}
			if to, local := reference.Local(i.Query.Bases); local && (include.Target == "" || include.Target == to.Type) {
				targets = append(targets, i.site.hash.Self(to.Type, to.ID))
			}
		}
	}
	slices.Sort(targets)
	targets = slices.Compact(targets)
	if len(targets) == 0 {
		return "", nil, nil
	}
	return i.ReferredTo(targets, i.onPage, i.spaceLeft())
}

// referring returns the statement that selects the records that refer to the records in to. sql is ""
// if no record can match.
func (i *inclusion) referring(include store.Include, to []*state) (sql string, args []any, err error) {
	var selves []int64
	for _, at := range to {
		if include.Target == "" || include.Target == at.key.Type {
			selves = append(selves, at.self)
		}
	}
	if len(selves) == 0 {
		return "", nil, nil
	}
	return i.Referring(include, selves, i.onPage, i.spaceLeft())
}

// spaceLeft returns one more than the number of records that can still be included, so that a query
// finds out whether records are left out.
func (i *inclusion) spaceLeft() int { return i.Query.MaxIncluded - len(i.page.Included) + 1 }

func compareKeys(a, b store.Key) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
}
