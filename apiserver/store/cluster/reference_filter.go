package cluster

import (
	"maps"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// referring returns the records of a type that refer to a record of this site by a parameter, or by
// any parameter if param is empty.
func (c *compiler) referring(t *typeIndex, param string, to store.Key) []*indexedRecord {
	list := t.postings.refs[refPosting{param, store.Reference{Type: to.Type, ID: to.ID}}]
	copied := false
	for _, base := range c.bases {
		more := t.postings.refs[refPosting{param, store.Reference{Base: base, Type: to.Type, ID: to.ID}}]
		if len(more) > 0 && !copied {
			list, copied = slices.Clone(list), true
		}
		for _, e := range more {
			list = insert(list, e)
		}
	}
	return list
}

func (c *compiler) refersTo(t *typeIndex, condition store.RefersTo) filter {
	f := valueFilter(condition.Param, func(r store.Reference) bool { return condition.Matches(r, c.bases) })
	if to, local := condition.To.Local(c.bases); local {
		return f.withList(c.referring(t, condition.Param, to), true)
	}
	return f.withList(t.postings.refs[refPosting{condition.Param, condition.To}], true)
}

// refersToID returns the filter of references with an id. Errors: *store.AmbiguousError if visible
// records have such references to several types.
func (c *compiler) refersToID(typeName string, condition store.RefersToID) (filter, error) {
	t := c.index.types[typeName]
	if t == nil {
		return anyOf(nil, c.budget), nil
	}
	visible, err := c.accessFilter(typeName)
	if err != nil {
		return filter{}, err
	}
	types := condition.Types
	if len(types) == 0 {
		types = t.postings.typesReferredTo(condition.Param, strings.ToLower(condition.ID), c.budget)
	}
	parts := make([]filter, 0, len(types))
	var found []string
	for _, target := range types {
		part := c.refersTo(t, store.RefersTo{Param: condition.Param, To: store.Reference{Type: target, ID: strings.ToLower(condition.ID)}})
		parts = append(parts, part)
		if slices.ContainsFunc(part.candidates(), visible.matches) {
			found = append(found, target)
		}
	}
	if len(found) > 1 {
		return filter{}, &store.AmbiguousError{Param: condition.Param, ID: condition.ID, Types: found}
	}
	return anyOf(parts, c.budget), nil
}

// typesReferredTo returns the types of the references by a parameter to an id.
func (p *postings) typesReferredTo(param, id string, w *queryBudget) []string {
	types := map[string]struct{}{}
	for name := range p.refs {
		if w.exceeded() {
			break
		}
		if name.param == param && name.to.ID == id {
			types[name.to.Type] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(types))
}

// localTargets yields the keys of the records of this site to which a record refers by a parameter,
// or by any parameter if param is empty.
func (c *compiler) localTargets(e *indexedRecord, param string, yield func(store.Key) bool) {
	for i := range e.values {
		reference, ok := e.values[i].Value.(store.Reference)
		if !ok || param != "" && e.values[i].Param != param {
			continue
		}
		if to, local := reference.Local(c.bases); local && !yield(to) {
			return
		}
	}
}

// chain returns the filter of records that refer to a record that meets the condition.
func (c *compiler) chain(typeName string, condition store.Chain) (filter, error) {
	targets, err := c.matchingRecords(condition.Type, condition.Where)
	if err != nil {
		return filter{}, err
	}
	ids := make(map[string]struct{}, len(targets))
	for _, target := range targets {
		ids[target.id] = struct{}{}
	}
	f := filter{matches: func(e *indexedRecord) bool {
		found := false
		c.localTargets(e, condition.Param, func(to store.Key) bool {
			if to.Type == condition.Type {
				_, found = ids[to.ID]
			}
			return !found
		})
		return found
	}}
	t := c.index.types[typeName]
	if t == nil {
		return f, nil
	}
	var list []*indexedRecord
	for _, target := range targets {
		if c.budget.exceeded() {
			break
		}
		list = append(list, c.referring(t, condition.Param, store.Key{Type: condition.Type, ID: target.id})...)
	}
	f.candidates, f.maxCandidates = func() []*indexedRecord { return list }, len(list)
	return f, nil
}

// referredBy returns the filter of records to which a record that meets the condition refers.
func (c *compiler) referredBy(typeName string, condition store.ReferredBy) (filter, error) {
	referring, err := c.matchingRecords(condition.Type, condition.Where)
	if err != nil {
		return filter{}, err
	}
	set := map[*indexedRecord]struct{}{}
	var list []*indexedRecord
	for _, from := range referring {
		c.localTargets(from, condition.Param, func(to store.Key) bool {
			if to.Type != typeName {
				return true
			}
			if e := c.index.live(to); e != nil {
				if _, twice := set[e]; !twice {
					set[e] = struct{}{}
					list = append(list, e)
				}
			}
			return true
		})
	}
	return filter{
		matches:       func(e *indexedRecord) bool { _, ok := set[e]; return ok },
		candidates:    func() []*indexedRecord { return list },
		maxCandidates: len(list),
	}, nil
}

// refersAround returns the filter of a RefersAround. It finds the members of the hierarchy by
// breadth-first search, and does not follow references of hidden records.
func (c *compiler) refersAround(typeName string, condition store.RefersAround) (filter, error) {
	root, local := condition.To.Local(c.bases)
	t := c.index.types[typeName]
	if !local || t == nil {
		return c.own(typeName, store.RefersTo{Param: condition.Param, To: condition.To}), nil
	}
	visible, err := c.accessFilter(typeName)
	if err != nil {
		return filter{}, err
	}
	members := map[store.Key]struct{}{root: {}}
	var found []*indexedRecord
	for next := []store.Key{root}; len(next) > 0; next = next[1:] {
		if c.budget.exceeded() {
			break
		}
		referring := c.referring(t, condition.Param, next[0])
		found = append(found, referring...)
		join := func(key store.Key) bool {
			if _, twice := members[key]; !twice {
				members[key] = struct{}{}
				next = append(next, key)
			}
			return true
		}
		if condition.Above {
			if e := c.index.live(next[0]); e != nil && e.obj.Spec.Type == typeName && visible.matches(e) {
				c.localTargets(e, condition.Param, join)
			}
			continue
		}
		for _, e := range referring {
			if visible.matches(e) {
				join(store.Key{Type: typeName, ID: e.id})
			}
		}
	}
	return filter{
		matches: func(e *indexedRecord) bool {
			found := false
			c.localTargets(e, condition.Param, func(to store.Key) bool {
				_, found = members[to]
				return !found
			})
			return found
		},
		candidates:    func() []*indexedRecord { return found },
		maxCandidates: len(found),
	}, nil
}

// matchingRecords returns the visible records of a type that meet a condition, each once.
func (c *compiler) matchingRecords(typeName string, condition store.Condition) ([]*indexedRecord, error) {
	f, err := c.compileVisible(typeName, condition)
	if err != nil {
		return nil, err
	}
	t := c.index.types[typeName]
	if t == nil {
		return nil, nil
	}
	return slices.Collect(c.matching(typeScan{t, f})), c.budget.err()
}
