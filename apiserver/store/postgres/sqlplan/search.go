// Package sqlplan translates queries into SQL. It translates conditions into access paths and
// tests, and writes one statement for a page. The statement has several branches, of which only one
// returns rows at run time. The README of package postgres explains this step by step. The package
// runs no statements itself; it reads what it needs from the database through the interface
// Database.
package sqlplan

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/order"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// Index describes the index of one site. It must not be changed while it is in use. All fields are
// required.
type Index struct {
	// Number is the number of the site in the database.
	Number int32
	// Hash and Extractor are the hasher and the extractor with which the site's records were indexed.
	Hash      indexrow.Hasher
	Extractor Extractor
	Limits    Limits
	// Columns is the SQL list of the columns that a page returns for each record, of the table res with
	// the alias r. Commas only separate columns.
	Columns  string
	Database Database
}

// Extractor is the part of store.Extractor on which plans depend.
type Extractor interface {
	IsFacet(param string) bool
	CommonCodes(recordType string) []store.CommonCode
	Ordinal(recordType, param string) int
	Fold(original string) string
	Parts(recordType, param string) []string
}

// Database provides the facts about a site's database on which plans depend. It must be safe for
// concurrent use.
type Database interface {
	// EntryCount returns the estimated number of index entries of the text or period parameter with a
	// key. It returns infinity if the number is not known.
	EntryCount(ctx context.Context, key int64) float64
	// RecordCount returns the estimated number of records of a type. It returns infinity if the number
	// is not known.
	RecordCount(ctx context.Context, typeName string) float64
	// Earlier returns the tables of earlier releases that the database has. They are searched.
	Earlier() indexrow.Earlier
	// LongList returns the entry of a list in the cache of long lists. known reports whether the list
	// is in the cache, because it was too long recently. isSlow reports whether the scan that replaced
	// it was slow.
	LongList(key uint64) (isSlow, known bool)
	// ReadNumbers runs a statement and returns the values of its only column, which has type int8. It
	// returns errors of the database as they are.
	ReadNumbers(ctx context.Context, sql string, args []any) ([]int64, error)
}

// Search writes the SQL statements of one search. It is not safe for concurrent use.
type Search struct {
	Context context.Context
	Index   *Index
	Query   store.Query
	Order   order.Order
	// After is the place of the last hit on the previous page, or nil for the first page.
	After *order.Place
	// ReferencePaths are the reference paths of the site. They are required if NeedsReferencePaths
	// returns true.
	ReferencePaths []indexrow.ReferencePath
	// AllBranches is set if the first list was too long: Page then returns a statement with all branches.
	AllBranches bool
	// resolved caches the types to which references without a type may point.
	resolved resolvedTypes
}

// bases returns the hashes of a site's own base URLs, including that of the empty URL.
func (x *Index) bases(urls []string) []int64 {
	hashes := []int64{0}
	for _, url := range urls {
		hashes = append(hashes, x.Hash.Base(url))
	}
	return hashes
}

func (s *Search) compiler() *compiler {
	return &compiler{
		Statement: s.Index.Statement(), ctx: s.Context, index: s.Index, earlier: s.Index.Database.Earlier(), access: s.Query.Access, local: s.Index.bases(s.Query.Bases), referencePaths: s.ReferencePaths, resolved: &s.resolved,
	}
}

// planner returns the planner for the matches of one type, in the order of the query.
func (s *Search) planner(c *compiler, typeName string) *planner {
	plan := &planner{compiler: c, typeName: typeName, order: s.Order, after: s.After}
	plan.predicates, plan.pathCount = c.splitPredicates(typeName, s.Query.WhereOf(typeName))
	if s.After != nil {
		plan.inclusive = order.Directed(strings.Compare(typeName, s.After.Type), s.Order.Descends()) > 0
	}
	return plan
}

// Page is a statement that reads a page of one type and one record more.
type Page struct {
	SQL  string
	Args []any
	// TriedLists are the cache keys of the lists that the statement tries. SkippedLists are the cache
	// keys of the lists that it does not try because they are in the cache of long lists. Both are
	// empty if the search has several types. In the rows, the column after Index.Columns has the number
	// of TriedLists that were too long. Unless the order is that of creation, three columns follow for
	// each sort key, which are the fields of order.Rank: Missing, Number and Text.
	TriedLists, SkippedLists []uint64
	// IsPartial reports whether the statement has only the branch by the first list. If that list is too
	// long, the statement returns one row, whose first column is NULL, and the page must be read with
	// AllBranches.
	IsPartial bool
	// IsBounded reports whether the time of the statement likely does not depend on the number of
	// records of the site. It is false if the search has several types.
	IsBounded bool
}

// Page returns the statement for a page of one type. Errors: *store.AmbiguousError,
// store.ErrQueryTimeout if the statement has too many arguments, and those of Database.ReadNumbers.
func (s *Search) Page(typeName string) (*Page, error) {
	c := s.compiler()
	plan := s.planner(c, typeName)
	plan.page = s.Query.Count + 1
	plan.limit = c.Arg(plan.page)
	plan.skipsLongLists = len(s.Query.Types) == 1
	plan.onlyFirstList = plan.skipsLongLists && !s.AllBranches
	branches, err := plan.branches()
	if err == nil {
		err = c.fits()
	}
	if err != nil {
		return nil, err
	}
	return &Page{
		SQL: c.sql(branches), Args: c.Args, TriedLists: plan.triedLists, SkippedLists: plan.skippedLists,
		IsPartial: plan.isPartial, IsBounded: plan.skipsLongLists && plan.isBounded(),
	}, nil
}

// CountLimits limit a count of matches. The zero value counts all.
type CountLimits struct {
	// Matches is the number of matches after which the count ends.
	Matches int
	// Candidates is the maximum number of candidates that are tested in a scan. If there are more, the
	// count is greater than Candidates.
	Candidates int
}

// Count returns a statement that counts the matches of one type. Errors: as for Page.
func (s *Search) Count(typeName string, limits CountLimits) (sql string, args []any, err error) {
	c := s.compiler()
	plan := &planner{compiler: c, typeName: typeName, onlyRid: true, order: order.Of(store.Query{}), maxCandidates: limits.Candidates}
	plan.predicates, plan.pathCount = c.splitPredicates(typeName, s.Query.WhereOf(typeName))
	plan.limit = "ALL"
	if limits.Matches > 0 {
		plan.limit = strconv.Itoa(limits.Matches)
	}
	branches, err := plan.branches()
	if err == nil {
		err = c.fits()
	}
	return c.sql("SELECT count(*) FROM (" + branches + ") counted"), c.Args, err
}

// CountConditions returns the number of conditions on a type. The caller must not plan a search
// with more than MaxConditions.
func (s *Search) CountConditions(typeName string) int {
	c := &compiler{index: s.Index, local: s.Index.bases(s.Query.Bases)}
	return c.countConditions(typeName, s.Query.WhereOf(typeName))
}

// NeedsReferencePaths reports whether a condition or a reverse include does not specify the parameter
// or the type of references.
func (s *Search) NeedsReferencePaths() bool {
	for _, typeName := range s.Query.Types {
		if needsReferencePaths(s.Query.WhereOf(typeName)) {
			return true
		}
	}
	for _, condition := range s.Query.Access {
		if needsReferencePaths(condition) {
			return true
		}
	}
	return slices.ContainsFunc(s.Query.Includes, func(i store.Include) bool { return i.Reverse && (i.Type == "" || i.Param == "") })
}

// needsReferencePaths reports whether a condition does not specify the parameter or the type of
// references.
func needsReferencePaths(condition store.Condition) bool {
	switch condition := condition.(type) {
	case store.All:
		return slices.ContainsFunc(condition, needsReferencePaths)
	case store.Any:
		return slices.ContainsFunc(condition, needsReferencePaths)
	case store.Not:
		return needsReferencePaths(condition.Condition)
	case store.RefersToID:
		return len(condition.Types) == 0
	case store.Chain:
		return condition.Param == "" || needsReferencePaths(condition.Where)
	case store.ReferredBy:
		return condition.Param == "" || needsReferencePaths(condition.Where)
	default:
		return false
	}
}
