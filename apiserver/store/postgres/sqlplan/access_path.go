package sqlplan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// accessPath is a way to find the candidates of a condition in an index: a list, a scan or both.
type accessPath struct {
	// list returns SQL that selects the rids of all candidates, in any order. It is nil if no index
	// range has them.
	list func() (string, error)
	// scan, if not nil, returns SQL that selects the same rids in the order of creation. If isOrdered
	// is true, the cost of the first rids does not depend on the number of all rids. bounds are
	// further conditions, each preceded by AND, in which x.rid is the rid.
	scan func(bounds, direction string) (string, error)
	// isExact reports whether all candidates meet the condition. Otherwise each must be tested.
	isExact bool
	// isOrdered reports whether the candidates are adjacent in the index, in the order of creation, so
	// that scan reads no other entries.
	isOrdered bool
	// scannedKey is the key of the parameter whose entries scan reads. It is 0 if scan is nil or isOrdered
	// is true.
	scannedKey int64
	// scansSignatures reports whether a scan of the signatures in the order of creation replaces a
	// list that is too long.
	scansSignatures bool
	// isInPresent reports whether the column present decides the condition.
	isInPresent bool
	// listKey, if not empty, replaces the SQL and the arguments of the list in its key in the cache of
	// long lists.
	listKey string
	// isShort reports whether the list is always short.
	isShort bool
	// sizeClass is one of the size classes below. It is lower for a list that is likely shorter.
	sizeClass int
}

// noRids selects nothing. It contains $1, because Postgres must know the type of each argument and
// noRids may be the whole statement.
const noRids = "SELECT NULL::int8 AS rid WHERE $1::int IS NULL"

// The size classes, in ascending order of the expected length of the list.
const (
	classIDs = iota
	classReference
	classToken
	classText
	classRelated
	classPeriod
	classPoint
	classUpdated
	classPresence
	classFacet
)

// accessPath returns the access path of a condition on records of a type, or nil if it has none.
func (c *compiler) accessPath(typeName string, condition store.Condition) *accessPath {
	switch condition := condition.(type) {
	case store.All:
		return c.allPath(typeName, condition)
	case store.Any:
		return c.anyPath(typeName, condition)
	case store.IDIn:
		return &accessPath{isExact: true, isShort: true, sizeClass: classIDs, list: func() (string, error) {
			return "SELECT x.rid FROM res x WHERE x.site = $1 AND x.self = ANY(" + c.selves(typeName, condition) + ") AND NOT x.deleted", nil
		}}
	case store.TokenIs:
		if condition.Code == nil {
			return nil
		}
		if c.commonBit(typeName, condition) != 0 {
			return c.commonPath(typeName, condition)
		}
		sizeClass := classToken
		if c.index.Extractor.IsFacet(condition.Param) {
			sizeClass = classFacet
		}
		return c.tokenPath(typeName, condition, sizeClass)
	case store.PairIs:
		return c.orderedPath(classToken, c.earlier.Tokens(), func() string { return c.pair(typeName, condition) })
	case store.RefersTo:
		return c.orderedPath(classReference, "ix_ref", func() string { return c.refersTo(typeName, condition) })
	case store.RefersToID:
		return c.refersToIDPath(typeName, condition)
	case store.RefersAround:
		return c.refersAroundPath(typeName, condition)
	case store.TextIs:
		if !c.earlier.WideTexts {
			return c.textPath(typeName, condition)
		}
		if condition.Match == store.Exactly || condition.Match == store.StartsExactly {
			return c.exactTextPath(typeName, condition)
		}
		if condition.Match != store.StartsWith || len(condition.Text) > indexrow.MaxIndexedBytes {
			return nil
		}
		return c.rangePath(classText, "ix_str", c.index.Hash.Param(typeName, condition.Param), func() string {
			return text(c.Statement, condition, true)
		})
	case store.PeriodIs:
		if condition.From == store.Unbounded && condition.Until.Most == store.TheEnd {
			return nil
		}
		return c.periodPath(typeName, condition.Param, areaOf(condition))
	case store.SinglePeriodIn:
		return c.singlePeriodPath(typeName, condition)
	case store.UpdatedIn:
		return c.updatedPath(typeName, condition)
	case store.Near:
		return &accessPath{isExact: true, sizeClass: classPoint, list: func() (string, error) {
			return "SELECT x.rid FROM ix_pos x WHERE x.site = $1 AND x.key = " + c.key(typeName, condition.Param) + " AND " + point(c.Statement, condition), nil
		}}
	case store.Chain:
		return c.chainPath(typeName, condition)
	case store.ReferredBy:
		return c.referredByPath(typeName, condition)
	default:
		if param, isPresent, ok := presenceOf(condition); ok {
			return c.presencePath(typeName, param, isPresent)
		}
		return nil
	}
}

// exactTextPath returns the path of a condition on original texts, which uses the index of folded
// texts. The indexed text may be the original one or the folded one, so the path looks for both. It
// returns nil for a text that is longer than indexrow.MaxIndexedBytes.
func (c *compiler) exactTextPath(typeName string, condition store.TextIs) *accessPath {
	if len(condition.Text) > indexrow.MaxIndexedBytes {
		return nil
	}
	forms := c.textForms(condition)
	return &accessPath{isExact: true, sizeClass: classText, list: func() (string, error) {
		parts := make([]string, len(forms))
		for i, form := range forms {
			var leads string
			if condition.Match == store.StartsExactly {
				leads = text(c.Statement, store.TextIs{Match: store.StartsWith, Text: form}, true)
			} else {
				leads = "x.val = " + c.Arg([]byte(indexrow.IndexedText(form)))
			}
			parts[i] = "SELECT x.rid FROM ix_str x WHERE x.site = $1 AND x.key = " + c.key(typeName, condition.Param) + " AND " + leads +
				" AND " + text(c.Statement, condition, false)
		}
		return strings.Join(parts, " UNION ALL "), nil
	}}
}

// orderedPath returns the path of entries with equal index values, which are in the order of
// creation.
func (c *compiler) orderedPath(sizeClass int, table string, where func() string) *accessPath {
	return &accessPath{
		isExact: true, isOrdered: true, sizeClass: sizeClass,
		list: func() (string, error) { return "SELECT x.rid FROM " + table + " x WHERE " + where(), nil },
		scan: func(bounds, direction string) (string, error) {
			return "SELECT DISTINCT x.rid FROM " + table + " x WHERE " + where() + bounds + " ORDER BY x.rid " + direction, nil
		},
	}
}

// tokenPath returns the path of a condition on tokens with a code. Those of a union have several keys,
// whose scans are merged.
func (c *compiler) tokenPath(typeName string, condition store.TokenIs, sizeClass int) *accessPath {
	keys := c.tokenKeys(typeName, condition.Param)
	paths := make([]*accessPath, len(keys))
	for i := range keys {
		paths[i] = c.orderedPath(sizeClass, c.earlier.Tokens(), func() string { return token(c.Statement, c.index.Hash, keys[i:i+1], condition) })
	}
	if len(keys) == 1 {
		return paths[0]
	}
	path := c.orderedPath(sizeClass, c.earlier.Tokens(), func() string { return token(c.Statement, c.index.Hash, keys, condition) })
	path.scan = mergedScan(paths)
	return path
}

// rangePath returns the path of a range of index values. Its scan is for wide ranges. The scan uses
// another index, which has the entries with their values in the order of creation. So the values are
// compared in the index pages, which takes a quarter of the time of comparing them in fetched rows.
// Postgres chooses that index because of the ORDER BY, as enable_sort is off.
func (c *compiler) rangePath(sizeClass int, table string, key int64, where func() string) *accessPath {
	facets := c.facets.periods
	filter := func() string {
		if facets == 0 {
			return where()
		}
		bits := c.Arg(facets)
		return "(x.facets & " + bits + ") = " + bits + " AND " + where()
	}
	all := func() string { return table + " x WHERE x.site = $1 AND x.key = " + c.Arg(key) }
	return &accessPath{
		isExact: true, sizeClass: sizeClass, scannedKey: key,
		list: func() (string, error) { return "SELECT x.rid FROM " + all() + " AND " + filter(), nil },
		scan: func(bounds, direction string) (string, error) {
			return "SELECT DISTINCT x.rid FROM " + all() + " AND " + filter() + bounds + " ORDER BY x.rid " + direction, nil
		},
	}
}

func (c *compiler) allPath(typeName string, all store.All) *accessPath {
	var best *accessPath
	for _, part := range all {
		if path := c.accessPath(typeName, part); path != nil && (best == nil || path.sizeClass < best.sizeClass) {
			best = path
		}
	}
	if best == nil {
		return nil
	}
	partial := *best
	partial.isExact = len(all) == 1 && best.isExact
	return &partial
}

func (c *compiler) anyPath(typeName string, alternatives store.Any) *accessPath {
	groups, rest := c.grouped(typeName, alternatives)
	if codes, ok := onlyCommonCodes(groups, rest); ok {
		return c.commonPath(typeName, codes...)
	}
	union := &accessPath{isExact: true, isShort: true}
	var lists []func() (string, error)
	var paths []*accessPath
	for _, g := range groups {
		union.isShort, union.sizeClass = false, max(union.sizeClass, g.sizeClass(c))
		lists = append(lists, func() (string, error) { return "SELECT x.rid FROM " + g.rowsOfAny(c, typeName), nil })
	}
	for _, condition := range rest {
		path := c.accessPath(typeName, condition)
		if path == nil {
			return nil
		}
		union.isExact, union.isShort, union.sizeClass = union.isExact && path.isExact, union.isShort && path.isShort, max(union.sizeClass, path.sizeClass)
		lists, paths = append(lists, path.list), append(paths, path)
	}
	union.list = func() (string, error) {
		if len(lists) == 0 {
			return noRids, nil
		}
		texts := make([]string, len(lists))
		for i, part := range lists {
			var err error
			if texts[i], err = part(); err != nil {
				return "", err
			}
		}
		return strings.Join(texts, " UNION ALL "), nil
	}
	if scanned := c.scanOnlyPath(typeName, alternatives); scanned != nil {
		union.scan, union.scannedKey = scanned.scan, scanned.scannedKey
	} else if len(groups) == 0 {
		union.scan = mergedScan(paths)
		union.isOrdered = union.scan != nil
	}
	return union
}

// maxMergedScans is the maximum number of scans that are merged. Each reads some four pages before
// its first record. If there are more alternatives, their path has only a list.
const maxMergedScans = 8

// mergedScan returns a scan that merges the scans of several paths. It returns nil if one of the paths
// is not ordered, or if there are fewer than two or more than maxMergedScans. Postgres merges them
// without sorting, because enable_sort is off.
func mergedScan(paths []*accessPath) func(bounds, direction string) (string, error) {
	if len(paths) < 2 || len(paths) > maxMergedScans || slices.ContainsFunc(paths, func(path *accessPath) bool { return !path.isOrdered }) {
		return nil
	}
	return func(bounds, direction string) (string, error) {
		texts := make([]string, len(paths))
		for i, path := range paths {
			text, err := path.scan(bounds, direction)
			if err != nil {
				return "", err
			}
			texts[i] = "(" + text + ")"
		}
		return "SELECT DISTINCT x.rid FROM (" + strings.Join(texts, " UNION ALL ") + ") x ORDER BY x.rid " + direction, nil
	}
}

// updatedPath returns the path of a condition on the time of update. It returns nil if the
// condition has only an upper bound, because most records meet it.
func (c *compiler) updatedPath(typeName string, condition store.UpdatedIn) *accessPath {
	if condition.From.IsZero() {
		return nil
	}
	until := condition.Until
	if time.Since(until) < time.Minute { // it may be the watermark, which differs for each query
		until = until.Truncate(time.Minute)
	}
	key := fmt.Sprint("updated", typeName, condition.From.UnixNano(), until.UnixNano())
	return &accessPath{isExact: true, sizeClass: classUpdated, listKey: key, list: func() (string, error) {
		return "SELECT x.rid FROM res x WHERE x.site = $1 AND x.typ = " + c.Arg(typeName) + " AND NOT x.deleted AND " + c.updatedIn("x.upd", condition), nil
	}}
}

func (c *compiler) refersToIDPath(typeName string, condition store.RefersToID) *accessPath {
	return &accessPath{isExact: true, sizeClass: classReference, list: func() (string, error) {
		to, err := c.targetsOf(typeName, condition)
		if err != nil || len(to) == 0 {
			return noRids, err
		}
		return "SELECT x.rid FROM ix_ref x WHERE " + c.references(typeName, condition.Param, to...), nil
	}}
}

// refersAroundPath returns the path of a search with :above or :below.
func (c *compiler) refersAroundPath(typeName string, condition store.RefersAround) *accessPath {
	return &accessPath{isExact: true, sizeClass: classReference, list: func() (string, error) {
		members, err := c.hierarchyTable(typeName, condition)
		if err != nil {
			return "", err
		}
		if members == "" {
			return "SELECT x.rid FROM ix_ref x WHERE " + c.refersTo(typeName, store.RefersTo{Param: condition.Param, To: condition.To}), nil
		}
		return "SELECT x.rid FROM " + members + " m CROSS JOIN LATERAL (SELECT f.rid FROM ix_ref f WHERE f.site = $1 AND f.tgt = m.tgt AND f.key = " +
			c.key(typeName, condition.Param) + " AND f.base = ANY(" + c.bases() + ")" + fence + ") x", nil
	}}
}

// fence ends a subquery that Postgres must evaluate as it is written. Without it, Postgres reorders the
// joins of a chain of two levels, and evaluates the inner list once for each reference of the
// parameter. And to return distinct rids, it reads a whole index that has them in order.
const fence = " OFFSET 0"

// matchingRows returns SQL that selects rid and self of those records in the list of a path that
// meet the condition and the access filter. path must be an access path of the condition.
func (c *compiler) matchingRows(typeName string, condition store.Condition, path *accessPath) (string, error) {
	candidates, err := path.list()
	if err != nil {
		return "", err
	}
	if path.isExact {
		condition = nil
	}
	row := c.name("t")
	where, err := c.liveAndVisible(candidateRow(typeName, row), condition)
	if err != nil {
		return "", err
	}
	i := c.name("i")
	return "(SELECT " + row + ".rid, " + row + ".self FROM (SELECT DISTINCT rid FROM (" + candidates + fence + ") " + i + ") " + i + "d CROSS JOIN LATERAL " +
		"(SELECT * FROM res x WHERE x.site = $1 AND x.typ = " + c.Arg(typeName) + " AND x.rid = " + i + "d.rid LIMIT 1) " + row + " WHERE " + where + ")", nil
}

// relatedPath is like accessPath, but for records other than the matches. c.facets does not apply to them.
func (c *compiler) relatedPath(typeName string, condition store.Condition) *accessPath {
	facets, isRelated := c.facets, c.isRelated
	c.facets, c.isRelated = facetBits{}, true
	defer func() { c.facets, c.isRelated = facets, isRelated }()
	return c.accessPath(typeName, condition)
}

func (c *compiler) chainPath(typeName string, condition store.Chain) *accessPath {
	targets := c.relatedPath(condition.Type, condition.Where)
	if condition.Where == nil || targets == nil {
		return nil
	}
	return &accessPath{isExact: true, sizeClass: classRelated, list: func() (string, error) {
		meeting, err := c.matchingRows(condition.Type, condition.Where, targets)
		if err != nil {
			return "", err
		}
		return "SELECT x.rid FROM " + meeting + " t CROSS JOIN LATERAL (SELECT f.rid FROM ix_ref f WHERE f.site = $1 AND f.tgt = t.self AND " +
			c.paramKeys("f.key", typeName, condition.Param) + " AND f.base = ANY(" + c.bases() + ")" + fence + ") x", nil
	}}
}

func (c *compiler) referredByPath(typeName string, condition store.ReferredBy) *accessPath {
	referring := c.relatedPath(condition.Type, condition.Where)
	if condition.Where == nil || referring == nil {
		return nil
	}
	return &accessPath{isExact: true, sizeClass: classRelated, list: func() (string, error) {
		meeting, err := c.matchingRows(condition.Type, condition.Where, referring)
		if err != nil {
			return "", err
		}
		return "SELECT x.rid FROM " + meeting + " t CROSS JOIN LATERAL (SELECT f.tgt FROM ix_ref f WHERE f.site = $1 AND f.rid = t.rid AND " +
			c.paramKeys("f.key", condition.Type, condition.Param) + " AND f.base = ANY(" + c.bases() + ")" + fence + ") f CROSS JOIN LATERAL " +
			"(SELECT r.rid FROM res r WHERE r.site = $1 AND r.self = f.tgt AND r.typ = " + c.Arg(typeName) + " AND NOT r.deleted LIMIT 1) x", nil
	}}
}
