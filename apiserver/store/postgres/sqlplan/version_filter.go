package sqlplan

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// VersionFilter returns the Access of a history as the SQL of a condition on a version with the alias
// x. The SQL begins with AND, or is empty if query.Access is nil. The condition also requires
// that the newest version of the record is visible. isPast reports whether x is a row of hist rather
// than res. Errors: *store.AmbiguousError, those of Database.ReadNumbers.
func (x *Index) VersionFilter(ctx context.Context, st *Statement, query store.HistoryQuery, isPast bool) (string, error) {
	if query.Access == nil {
		return "", nil
	}
	c := x.Tests(ctx, st, x.bases(query.Bases)).c
	types := []string{never}
	for _, typeName := range slices.Sorted(maps.Keys(query.Access)) {
		if query.Key.Type != "" && query.Key.Type != typeName {
			continue
		}
		condition := query.Access[typeName]
		version := candidateRow(typeName, "x")
		version.isPast = isPast
		test, err := c.test(version, condition)
		if err != nil {
			return "", err
		}
		if isPast && !store.IsEverything(condition) {
			newest, err := c.test(candidateRow(typeName, "n"), condition)
			if err != nil {
				return "", err
			}
			test += " AND " + exists("res n WHERE n.site = $1 AND n.self = x.self AND "+newest)
		}
		types = append(types, "(x.typ = "+c.Arg(typeName)+" AND "+test+")")
	}
	return " AND (" + strings.Join(types, " OR ") + ")", nil
}

// Tests writes conditions on records as SQL, for a statement that the caller writes.
type Tests struct{ c *compiler }

// Tests returns a Tests for a statement. bases are the hashes of the site's own base URLs.
func (x *Index) Tests(ctx context.Context, st *Statement, bases []int64) Tests {
	return Tests{&compiler{Statement: st, ctx: ctx, index: x, earlier: x.Database.Earlier(), local: bases, resolved: &resolvedTypes{}}}
}

// Of returns the SQL of a condition on a row of res whose record type is typeName. row is the alias of
// res in the statement. Errors: *store.AmbiguousError, those of Database.ReadNumbers.
func (t Tests) Of(typeName, row string, condition store.Condition) (string, error) {
	return t.c.test(candidateRow(typeName, row), condition)
}

// Bases returns the placeholder of the argument with the hashes of the base URLs.
func (t Tests) Bases() string { return t.c.bases() }
