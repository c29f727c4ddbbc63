package cluster

import (
	"iter"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// filter is a condition made ready for the entries of one type.
type filter struct {
	// holds decides on an entry.
	holds func(e *entry) bool
	// gather returns entries among which are all that the condition holds for, maybe
	// some twice. Nil: only a walk over all entries finds them.
	gather func() []*entry
	// check decides on what gather returns; nil: the condition holds for all of it.
	check func(e *entry) bool
	// atMost bounds how many gather returns, where it is not nil.
	atMost int
	// ordered tells that gather returns each once, in the order of creation.
	ordered bool
	// everything tells that the condition holds for all entries.
	everything bool
	// spans are where all entries are that the condition holds for, each in another order.
	spans []span
}

// everything holds for all entries.
var everything = filter{holds: func(*entry) bool { return true }, everything: true}

// compiler makes filters for one query. The caller holds the index's lock for as long
// as it uses them.
type compiler struct {
	index  *index
	bases  []string
	access store.Access
	// visible are the filters of access, by type.
	visible map[string]filter
	// work counts entries looked at, against the query's deadline.
	work *work
}

// visibleOf is the filter of what the query may meet of a type.
func (c *compiler) visibleOf(typeName string) (filter, error) {
	if c.access == nil {
		return everything, nil
	}
	if f, known := c.visible[typeName]; known {
		return f, nil
	}
	condition, allowed := c.access[typeName]
	if all, ok := condition.(store.All); ok && len(all) == 0 {
		return everything, nil
	}
	if !allowed {
		condition = store.Any{}
	}
	// What access itself looks through is not the caller's to see, so nothing is hidden from it.
	unrestricted := compiler{index: c.index, bases: c.bases, work: c.work}
	f, err := unrestricted.compile(typeName, condition)
	if err == nil {
		c.visible[typeName] = f
	}
	return f, err
}

// restricted is the filter of a condition and of what may be met of the type.
func (c *compiler) restricted(typeName string, condition store.Condition) (filter, error) {
	visible, err := c.visibleOf(typeName)
	if err != nil {
		return filter{}, err
	}
	if condition == nil {
		return visible, nil
	}
	f, err := c.compile(typeName, condition)
	return all([]filter{f, visible}), err
}

// compile makes the filter of a condition on a type.
func (c *compiler) compile(typeName string, condition store.Condition) (filter, error) {
	switch condition := condition.(type) {
	case store.All:
		parts, err := c.compileEach(typeName, condition)
		return all(parts), err
	case store.Any:
		parts, err := c.compileEach(typeName, condition)
		return anyOf(parts, c.work), err
	case store.Not:
		part, err := c.compile(typeName, condition.Condition)
		return filter{holds: func(e *entry) bool { return !part.holds(e) }}, err
	case store.RefersToID:
		return c.refersToID(typeName, condition)
	case store.RefersAround:
		return c.refersAround(typeName, condition)
	case store.Chain:
		return c.chain(typeName, condition)
	case store.ReferredBy:
		return c.referredBy(typeName, condition)
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

// own makes the filter of a condition that a record's own values decide.
func (c *compiler) own(typeName string, condition store.Condition) filter {
	t := c.index.types[typeName]
	if t == nil {
		t = newTypeIndex()
	}
	switch condition := condition.(type) {
	case store.IDIn:
		return c.idIn(typeName, condition)
	case store.UpdatedIn:
		return t.updatedIn(condition)
	case store.Present:
		return filter{holds: func(e *entry) bool { return e.has(condition.Param, func(store.Value) bool { return true }) }}
	case store.TokenIs:
		return t.postings.tokenIs(condition)
	case store.TextIs:
		return t.postings.textIs(condition, t.created.Len()/2)
	case store.PeriodIs:
		return t.postings.periodIs(condition, t.created.Len()/2)
	case store.SinglePeriodIn:
		return t.singlePeriodIn(condition)
	case store.RefersTo:
		return c.refersTo(t, condition)
	case store.PairIs:
		return valueFilter(condition.Param, condition.Matches)
	case store.Near:
		return valueFilter(condition.Param, condition.Matches)
	default:
		panic("a condition that the engine does not know") // the interface is sealed
	}
}

// has reports whether one of the parameter's values is as wanted.
func (e *entry) has(param string, wanted func(store.Value) bool) bool {
	for i := range e.entries {
		if e.entries[i].Param == param && wanted(e.entries[i].Value) {
			return true
		}
	}
	return false
}

// valueFilter makes a filter that looks at each value.
func valueFilter[V store.Value](param string, matches func(V) bool) filter {
	return filter{holds: func(e *entry) bool {
		return e.has(param, func(value store.Value) bool {
			v, ok := value.(V)
			return ok && matches(v)
		})
	}}
}

// listed makes a filter gather from a list in the order of creation; exact tells that
// the list has no others than those that it holds for.
func (f filter) listed(list []*entry, exact bool) filter {
	f.gather, f.atMost, f.ordered = func() []*entry { return list }, len(list), true
	if f.check = f.holds; exact {
		f.check = nil
	}
	return f
}

// from makes a filter gather what a sequence yields, unless that is more than is worth
// gathering; exact as in listed.
func (f filter) from(entries iter.Seq[*entry], most int, exact bool) filter {
	var list []*entry
	for e := range entries {
		if list = append(list, e); len(list) > most {
			return f
		}
	}
	f = f.listed(list, exact)
	f.ordered = false
	return f
}

func (p *postings) tokenIs(condition store.TokenIs) filter {
	f := valueFilter(condition.Param, condition.Matches)
	switch {
	case condition.Code != nil && *condition.Code != "":
		return f.listed(p.tokens[tokenPosting{param: condition.Param, code: *condition.Code}], condition.System == nil)
	case condition.System != nil && *condition.System != "":
		return f.listed(p.tokens[tokenPosting{param: condition.Param, system: *condition.System}], condition.Code == nil)
	default:
		return f
	}
}

func (p *postings) textIs(condition store.TextIs, most int) filter {
	f := valueFilter(condition.Param, condition.Matches)
	if condition.Match != store.StartsWith {
		return f
	}
	return f.from(p.startingWith(condition.Param, condition.Text), most, true)
}

// periodIs gathers by the beginning, which the end bounds too: nothing ends before it
// begins.
func (p *postings) periodIs(condition store.PeriodIs, most int) filter {
	f := valueFilter(condition.Param, condition.Matches)
	within := store.Bounds{Least: condition.From.Least, Most: min(condition.From.Most, condition.Until.Most)}
	if within == store.Unbounded {
		return f
	}
	return f.from(p.beginning(condition.Param, within), most, condition.Until == store.Unbounded)
}

func (c *compiler) idIn(typeName string, ids store.IDIn) filter {
	wanted := make(map[string]struct{}, len(ids))
	var list []*entry
	for _, id := range ids {
		folded := strings.ToLower(id)
		if _, twice := wanted[folded]; twice {
			continue
		}
		wanted[folded] = struct{}{}
		if e := c.index.visible(store.Key{Type: typeName, ID: folded}); e != nil {
			list = append(list, e)
		}
	}
	return filter{
		holds:  func(e *entry) bool { _, ok := wanted[e.id]; return ok },
		gather: func() []*entry { return list },
		atMost: len(list),
	}
}

// all makes the filter that holds where all parts do: it gathers from the part that
// leaves the fewest.
func all(parts []filter) filter {
	parts = slices.DeleteFunc(parts, func(part filter) bool { return part.everything })
	switch len(parts) {
	case 0:
		return everything
	case 1:
		return parts[0]
	}
	best := -1
	f := filter{holds: holdsAll(parts)}
	for i, part := range parts {
		f.spans = append(f.spans, part.spans...)
		if part.gather != nil && (best < 0 || part.atMost < parts[best].atMost) {
			best = i
		}
	}
	if best < 0 {
		return f
	}
	f.gather, f.atMost, f.ordered = parts[best].gather, parts[best].atMost, parts[best].ordered
	if f.check = f.holds; parts[best].check == nil {
		f.check = holdsAll(slices.Delete(slices.Clone(parts), best, best+1))
	}
	return f
}

func holdsAll(parts []filter) func(*entry) bool {
	return func(e *entry) bool {
		for i := range parts {
			if !parts[i].holds(e) {
				return false
			}
		}
		return true
	}
}

// manyAlternatives is from when on a set of the entries that match is cheaper than
// trying the alternatives on each.
const manyAlternatives = 8

// anyOf makes the filter that holds where one of the parts does.
func anyOf(parts []filter, w *work) filter {
	if len(parts) == 1 {
		return parts[0]
	}
	f := filter{holds: func(e *entry) bool {
		for i := range parts {
			if parts[i].holds(e) {
				return true
			}
		}
		return false
	}}
	atMost := 0
	for _, part := range parts {
		if part.gather == nil {
			return f
		}
		if part.check != nil {
			f.check = f.holds
		}
		atMost += part.atMost
	}
	f.atMost = atMost
	f.gather = func() []*entry {
		gathered := make([]*entry, 0, atMost)
		for _, part := range parts {
			gathered = append(gathered, part.gather()...)
		}
		return gathered
	}
	if len(parts) < manyAlternatives {
		return f
	}
	set := map[*entry]struct{}{}
	for _, part := range parts {
		for _, e := range part.gather() {
			if w.done() {
				break
			}
			if part.check == nil || part.check(e) {
				set[e] = struct{}{}
			}
		}
	}
	f.holds = func(e *entry) bool { _, ok := set[e]; return ok }
	if f.check != nil {
		f.check = f.holds
	}
	return f
}
