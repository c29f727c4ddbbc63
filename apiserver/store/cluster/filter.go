package cluster

import (
	"iter"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// filter is a condition compiled for the records of one type.
type filter struct {
	// matches reports whether a record meets the condition.
	matches func(e *indexedRecord) bool
	// candidates returns a superset of the matching records, in which a record may occur twice. If
	// candidates is nil, only a full scan finds the matches.
	candidates func() []*indexedRecord
	// recheck tests the candidates. If it is nil, all candidates match.
	recheck func(e *indexedRecord) bool
	// maxCandidates is an upper bound of the number of candidates, if candidates is not nil.
	maxCandidates int
	// sorted reports whether candidates returns each record once, in the order of creation.
	sorted bool
	// everything reports whether the condition holds for all records.
	everything bool
	// ranges are value ranges. Each of them contains all matches, so a scan needs only one of them.
	ranges []valueRange
	// labels, if not nil, is a condition of access on labels alone. A candidate, or any record of the
	// type if candidates is nil, then matches exactly if it meets both before and labels.
	labels store.Condition
	before func(e *indexedRecord) bool
}

// everything matches all records.
var everything = filter{matches: func(*indexedRecord) bool { return true }, everything: true}

// compiler compiles the conditions of one query. The caller holds the lock of the index as long as
// it uses the filters.
type compiler struct {
	index  *index
	bases  []string
	access store.Access
	// accessFilters are the compiled conditions of access by type, for those types that were needed.
	accessFilters map[string]filter
	// budget ends the query at its deadline.
	budget *queryBudget
}

// accessFilter returns the filter of the records of a type that the caller may see.
func (c *compiler) accessFilter(typeName string) (filter, error) {
	if c.access == nil {
		return everything, nil
	}
	if f, known := c.accessFilters[typeName]; known {
		return f, nil
	}
	condition, allowed := c.access[typeName]
	if store.IsEverything(condition) {
		return everything, nil
	}
	if !allowed {
		condition = store.Any{}
	}
	if testsLabels(condition) {
		f := labelFilter(condition)
		c.accessFilters[typeName] = f
		return f, nil
	}
	// A condition of access may test hidden records too: LinksTo does.
	unrestricted := compiler{index: c.index, bases: c.bases, budget: c.budget}
	f, err := unrestricted.compile(typeName, condition)
	if err == nil {
		c.accessFilters[typeName] = f
	}
	return f, err
}

// compileVisible returns the filter of the records of a type that meet a condition and that the
// caller may see.
func (c *compiler) compileVisible(typeName string, condition store.Condition) (filter, error) {
	visible, err := c.accessFilter(typeName)
	if err != nil {
		return filter{}, err
	}
	if condition == nil {
		return visible, nil
	}
	f, err := c.compile(typeName, condition)
	both := all([]filter{f, visible})
	if visible.labels != nil && f.candidates != nil && f.recheck == nil {
		both.labels, both.before = visible.labels, f.matches
	}
	return both, err
}

// compile returns the filter of the records of a type that meet a condition, whether the caller may
// see them or not.
func (c *compiler) compile(typeName string, condition store.Condition) (filter, error) {
	switch condition := condition.(type) {
	case store.All:
		parts, err := c.compileEach(typeName, condition)
		return all(parts), err
	case store.Any:
		parts, err := c.compileEach(typeName, condition)
		return anyOf(parts, c.budget), err
	case store.Not:
		part, err := c.compile(typeName, condition.Condition)
		return filter{matches: func(e *indexedRecord) bool { return !part.matches(e) }}, err
	case store.RefersToID:
		return c.refersToID(typeName, condition)
	case store.RefersAround:
		return c.refersAround(typeName, condition)
	case store.Chain:
		return c.chain(typeName, condition)
	case store.ReferredBy:
		return c.referredBy(typeName, condition)
	case store.LinksTo:
		return c.linksTo(condition)
	default:
		return c.own(typeName, condition), nil
	}
}

func (c *compiler) compileEach(typeName string, conditions []store.Condition) ([]filter, error) {
	parts := make([]filter, len(conditions))
	for i, condition := range conditions {
		var err error
		if parts[i], err = c.compile(typeName, condition); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// own returns the filter of a condition that only tests the record itself.
func (c *compiler) own(typeName string, condition store.Condition) filter {
	t := c.index.types[typeName]
	if t == nil {
		t = newTypeIndex()
	}
	switch condition := condition.(type) {
	case store.HasLabel:
		return filter{matches: func(e *indexedRecord) bool { return e.labels.Has(string(condition)) }}
	case store.IDIn:
		return c.idIn(typeName, condition)
	case store.UpdatedIn:
		return t.updatedIn(condition)
	case store.Present:
		return filter{matches: func(e *indexedRecord) bool { return e.has(condition.Param, func(store.Value) bool { return true }) }}
	case store.TokenIs:
		return t.postings.tokenIs(condition)
	case store.TextIs:
		return t.postings.textIs(condition, t.created.Len()/2, c.budget)
	case store.PeriodIs:
		return t.postings.periodIs(condition, t.created.Len()/2, c.budget)
	case store.SinglePeriodIn:
		return t.singlePeriodIn(condition)
	case store.RefersTo:
		return c.refersTo(t, condition)
	case store.PairIs:
		return valueFilter(condition.Param, condition.Matches)
	case store.Near:
		return valueFilter(condition.Param, condition.Matches)
	default:
		panic("unknown condition") // impossible: store.Condition is sealed
	}
}

// has reports whether wanted is true for a value of the parameter.
func (e *indexedRecord) has(param string, wanted func(store.Value) bool) bool {
	for i := range e.values {
		if e.values[i].Param == param && wanted(e.values[i].Value) {
			return true
		}
	}
	return false
}

// valueFilter returns a filter that tests the values of a parameter, without candidates.
func valueFilter[V store.Value](param string, matches func(V) bool) filter {
	return filter{matches: func(e *indexedRecord) bool {
		return e.has(param, func(value store.Value) bool {
			v, ok := value.(V)
			return ok && matches(v)
		})
	}}
}

// withList sets the candidates to a list in the order of creation. exact reports whether all of
// them match.
func (f filter) withList(list []*indexedRecord, exact bool) filter {
	f.candidates, f.maxCandidates, f.sorted = func() []*indexedRecord { return list }, len(list), true
	if f.recheck = f.matches; exact {
		f.recheck = nil
	}
	return f
}

// withSeq sets the candidates to the records of a sequence if there are at most limit. exact
// reports whether all of them match.
func (f filter) withSeq(entries iter.Seq[*indexedRecord], limit int, exact bool, w *queryBudget) filter {
	var list []*indexedRecord
	for e := range entries {
		if list = append(list, e); w.exceeded() || len(list) > limit {
			return f
		}
	}
	f = f.withList(list, exact)
	f.sorted = false
	return f
}

func (p *postings) tokenIs(condition store.TokenIs) filter {
	f := valueFilter(condition.Param, condition.Matches)
	switch {
	case condition.Code != nil && *condition.Code != "":
		return f.withList(p.tokens[tokenPosting{param: condition.Param, code: *condition.Code}], condition.System == nil)
	case condition.System != nil && *condition.System != "":
		return f.withList(p.tokens[tokenPosting{param: condition.Param, system: *condition.System}], condition.Code == nil)
	default:
		return f
	}
}

func (p *postings) textIs(condition store.TextIs, limit int, w *queryBudget) filter {
	f := valueFilter(condition.Param, condition.Matches)
	if condition.Match != store.StartsWith {
		return f
	}
	return f.withSeq(p.startingWith(condition.Param, condition.Text), limit, true, w)
}

// periodIs returns the filter of a PeriodIs. The candidates are the records with a period that starts
// within a range. Until.Most limits that range too, because no period ends before it starts.
func (p *postings) periodIs(condition store.PeriodIs, limit int, w *queryBudget) filter {
	f := valueFilter(condition.Param, condition.Matches)
	within := store.Bounds{Least: condition.From.Least, Most: min(condition.From.Most, condition.Until.Most)}
	if within == store.Unbounded {
		return f
	}
	return f.withSeq(p.startingWithin(condition.Param, within), limit, condition.Until == store.Unbounded, w)
}

func (c *compiler) idIn(typeName string, ids store.IDIn) filter {
	wanted := make(map[string]struct{}, len(ids))
	var list []*indexedRecord
	for _, id := range ids {
		folded := strings.ToLower(id)
		if _, twice := wanted[folded]; twice {
			continue
		}
		wanted[folded] = struct{}{}
		if e := c.index.live(store.Key{Type: typeName, ID: folded}); e != nil {
			list = append(list, e)
		}
	}
	return filter{
		matches:       func(e *indexedRecord) bool { _, ok := wanted[e.id]; return ok },
		candidates:    func() []*indexedRecord { return list },
		maxCandidates: len(list),
	}
}

// all returns the filter of the records that match all parts. Its candidates are those of the part
// with the fewest candidates.
func all(parts []filter) filter {
	parts = slices.DeleteFunc(parts, func(part filter) bool { return part.everything })
	switch len(parts) {
	case 0:
		return everything
	case 1:
		return parts[0]
	}
	best := -1
	f := filter{matches: matchesAll(parts)}
	for i, part := range parts {
		f.ranges = append(f.ranges, part.ranges...)
		if part.candidates != nil && (best < 0 || part.maxCandidates < parts[best].maxCandidates) {
			best = i
		}
	}
	if best < 0 {
		return f
	}
	f.candidates, f.maxCandidates, f.sorted = parts[best].candidates, parts[best].maxCandidates, parts[best].sorted
	rest := slices.Clone(parts)
	if rest[best].matches = rest[best].recheck; rest[best].matches == nil {
		rest = slices.Delete(rest, best, best+1)
	}
	f.recheck = matchesAll(rest)
	return f
}

func matchesAll(parts []filter) func(*indexedRecord) bool {
	return func(e *indexedRecord) bool {
		for i := range parts {
			if !parts[i].matches(e) {
				return false
			}
		}
		return true
	}
}

// minSetAlternatives is the number of alternatives of an Any from which anyOf builds a set of all
// matching records. With fewer, testing each alternative per record is cheaper.
const minSetAlternatives = 8

// anyOf returns the filter of the records that match at least one of the parts.
func anyOf(parts []filter, w *queryBudget) filter {
	if len(parts) == 1 {
		return parts[0]
	}
	f := filter{matches: func(e *indexedRecord) bool {
		for i := range parts {
			if parts[i].matches(e) {
				return true
			}
		}
		return false
	}}
	maxCandidates := 0
	for _, part := range parts {
		if part.candidates == nil {
			return f
		}
		if part.recheck != nil {
			f.recheck = f.matches
		}
		maxCandidates += part.maxCandidates
	}
	f.maxCandidates = maxCandidates
	f.candidates = func() []*indexedRecord {
		all := make([]*indexedRecord, 0, maxCandidates)
		for _, part := range parts {
			all = append(all, part.candidates()...)
		}
		return all
	}
	if len(parts) < minSetAlternatives {
		return f
	}
	set := map[*indexedRecord]struct{}{}
	for _, part := range parts {
		for _, e := range part.candidates() {
			if w.exceeded() {
				break
			}
			if part.recheck == nil || part.recheck(e) {
				set[e] = struct{}{}
			}
		}
	}
	f.matches = func(e *indexedRecord) bool { _, ok := set[e]; return ok }
	if f.recheck != nil {
		f.recheck = f.matches
	}
	return f
}
