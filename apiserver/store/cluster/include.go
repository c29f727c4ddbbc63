package cluster

import (
	"github.com/paddock-health/paddock/apiserver/store"
)

// include puts the records on a page that its query's includes ask for.
func (c *compiler) include(query store.Query, matches []ranked, page *store.Page) error {
	if len(query.Includes) == 0 {
		return nil
	}
	known := make(map[*entry]struct{}, len(matches))
	next := make([]*entry, len(matches))
	for i, at := range matches {
		known[at.entry] = struct{}{}
		next[i] = at.entry
	}
	for depth := 0; len(next) > 0; depth++ {
		var added []*entry
		for _, e := range next {
			for _, include := range query.Includes {
				if depth > 0 && !include.Iterate {
					continue
				}
				for _, other := range c.related(e, include) {
					if _, twice := known[other]; twice || c.work.done() {
						continue
					}
					visible, err := c.visibleOf(other.obj.Spec.Type)
					if err != nil {
						return err
					}
					if !visible.holds(other) {
						continue
					}
					if len(page.Included) == query.MaxIncluded {
						page.IncludedCut = true
						return c.work.err()
					}
					known[other] = struct{}{}
					added = append(added, other)
					page.Included = append(page.Included, toRecord(other.obj))
				}
			}
		}
		next = added
	}
	return c.work.err()
}

// related lists the entries that an include leads to from an entry.
func (c *compiler) related(e *entry, include store.Include) []*entry {
	self := store.Key{Type: e.obj.Spec.Type, ID: e.id}
	var found []*entry
	if !include.Reverse {
		if include.Type != "" && include.Type != self.Type {
			return nil
		}
		c.localTargets(e, include.Param, func(to store.Key) bool {
			if other := c.index.visible(to); other != nil && (include.Target == "" || include.Target == to.Type) {
				found = append(found, other)
			}
			return true
		})
		return found
	}
	if include.Target != "" && include.Target != self.Type {
		return nil
	}
	for _, typeName := range c.index.typeNames() {
		if include.Type == "" || include.Type == typeName {
			found = append(found, c.referring(c.index.types[typeName], include.Param, self)...)
		}
	}
	return found
}
