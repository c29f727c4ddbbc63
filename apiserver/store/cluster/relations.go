package cluster

import (
	"maps"
	"slices"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// referring lists the entries of a type that refer, by a parameter or, where that is
// empty, by any, to a record of this site.
func (c *compiler) referring(t *typeIndex, param string, to store.Key) []*entry {
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
		return f.listed(c.referring(t, condition.Param, to), true)
	}
	return f.listed(t.postings.refs[refPosting{condition.Param, condition.To}], true)
}

// refersToID finds the references with an id, and refuses when they are to records of
// several types.
func (c *compiler) refersToID(typeName string, condition store.RefersToID) (filter, error) {
	t := c.index.types[typeName]
	if t == nil {
		return anyOf(nil, c.work), nil
	}
	visible, err := c.visibleOf(typeName)
	if err != nil {
		return filter{}, err
	}
	types := condition.Types
	if len(types) == 0 {
		types = t.postings.typesReferredTo(condition.Param, strings.ToLower(condition.ID))
	}
	parts := make([]filter, 0, len(types))
	var found []string
	for _, target := range types {
		part := c.refersTo(t, store.RefersTo{Param: condition.Param, To: store.Reference{Type: target, ID: strings.ToLower(condition.ID)}})
		parts = append(parts, part)
		if slices.ContainsFunc(part.gather(), visible.holds) {
			found = append(found, target)
		}
	}
	if len(found) > 1 {
		return filter{}, &store.AmbiguousError{Param: condition.Param, ID: condition.ID, Types: found}
	}
	return anyOf(parts, c.work), nil
}

// typesReferredTo lists the types that references by a parameter to an id have.
func (p *postings) typesReferredTo(param, id string) []string {
	types := map[string]struct{}{}
	for name := range p.refs {
		if name.param == param && name.to.ID == id {
			types[name.to.Type] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(types))
}

// localTargets yields the records of this site that an entry refers to by a parameter
// or, where that is empty, by any.
func (c *compiler) localTargets(e *entry, param string, yield func(store.Key) bool) {
	for i := range e.entries {
		reference, ok := e.entries[i].Value.(store.Reference)
		if !ok || param != "" && e.entries[i].Param != param {
			continue
		}
		if to, local := reference.Local(c.bases); local && !yield(to) {
			return
		}
	}
}

// chain finds the entries that refer to one of the records that meet the condition.
func (c *compiler) chain(typeName string, condition store.Chain) (filter, error) {
	targets, err := c.meeting(condition.Type, condition.Where)
	if err != nil {
		return filter{}, err
	}
	ids := make(map[string]struct{}, len(targets))
	for _, target := range targets {
		ids[target.id] = struct{}{}
	}
	f := filter{holds: func(e *entry) bool {
		holds := false
		c.localTargets(e, condition.Param, func(to store.Key) bool {
			if to.Type == condition.Type {
				_, holds = ids[to.ID]
			}
			return !holds
		})
		return holds
	}}
	t := c.index.types[typeName]
	if t == nil {
		return f, nil
	}
	var list []*entry
	for _, target := range targets {
		if c.work.done() {
			break
		}
		list = append(list, c.referring(t, condition.Param, store.Key{Type: condition.Type, ID: target.id})...)
	}
	f.gather, f.atMost = func() []*entry { return list }, len(list)
	return f, nil
}

// referredBy finds the entries that one of the records that meet the condition refers to.
func (c *compiler) referredBy(typeName string, condition store.ReferredBy) (filter, error) {
	referring, err := c.meeting(condition.Type, condition.Where)
	if err != nil {
		return filter{}, err
	}
	set := map[*entry]struct{}{}
	var list []*entry
	for _, from := range referring {
		c.localTargets(from, condition.Param, func(to store.Key) bool {
			if to.Type != typeName {
				return true
			}
			if e := c.index.visible(to); e != nil {
				if _, twice := set[e]; !twice {
					set[e] = struct{}{}
					list = append(list, e)
				}
			}
			return true
		})
	}
	return filter{
		holds:  func(e *entry) bool { _, ok := set[e]; return ok },
		gather: func() []*entry { return list },
		atMost: len(list),
	}, nil
}

// refersAround walks a hierarchy over the records that may be met.
func (c *compiler) refersAround(typeName string, condition store.RefersAround) (filter, error) {
	root, local := condition.To.Local(c.bases)
	t := c.index.types[typeName]
	if !local || t == nil {
		return c.own(typeName, store.RefersTo{Param: condition.Param, To: condition.To}), nil
	}
	visible, err := c.visibleOf(typeName)
	if err != nil {
		return filter{}, err
	}
	members := map[store.Key]struct{}{root: {}}
	var found []*entry
	for next := []store.Key{root}; len(next) > 0; next = next[1:] {
		if c.work.done() {
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
			if e := c.index.visible(next[0]); e != nil && e.obj.Spec.Type == typeName && visible.holds(e) {
				c.localTargets(e, condition.Param, join)
			}
			continue
		}
		for _, e := range referring {
			if visible.holds(e) {
				join(store.Key{Type: typeName, ID: e.id})
			}
		}
	}
	return filter{
		holds: func(e *entry) bool {
			holds := false
			c.localTargets(e, condition.Param, func(to store.Key) bool {
				_, holds = members[to]
				return !holds
			})
			return holds
		},
		gather: func() []*entry { return found },
		atMost: len(found),
	}, nil
}

// meeting lists the entries of a type that may be met and meet a condition, each once.
func (c *compiler) meeting(typeName string, condition store.Condition) ([]*entry, error) {
	f, err := c.restricted(typeName, condition)
	if err != nil {
		return nil, err
	}
	t := c.index.types[typeName]
	if t == nil {
		return nil, nil
	}
	return slices.Collect(c.matching(source{t, f})), c.work.err()
}
