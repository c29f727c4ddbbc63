package cluster

import (
	"github.com/paddock-health/paddock/apiserver/store"
)

func (c *compiler) include(query store.Query, matches []ranked, page *store.Page) error {
	if len(query.Includes) == 0 {
		return nil
	}
	known := make(map[*indexedRecord]struct{}, len(matches))
	next := make([]*indexedRecord, len(matches))
	for i, at := range matches {
		known[at.record] = struct{}{}
		next[i] = at.record
	}
	for depth := 0; len(next) > 0; depth++ {
		var added []*indexedRecord
		for _, e := range next {
			for _, include := range query.Includes {
				if depth > 0 && !include.Iterate {
					continue
				}
				for _, other := range c.related(e, include) {
					if _, twice := known[other]; twice || c.budget.exceeded() {
						continue
					}
					visible, err := c.accessFilter(other.obj.Spec.Type)
					if err != nil {
						return err
					}
					if !visible.matches(other) {
						continue
					}
					if len(page.Included) == query.MaxIncluded {
						page.IncludedCut = true
						return c.budget.err()
					}
					known[other] = struct{}{}
					added = append(added, other)
					page.Included = append(page.Included, toRecord(other.obj))
				}
			}
		}
		next = added
	}
	return c.budget.err()
}

// related returns the live records that an include selects for a record, visible or not.
func (c *compiler) related(e *indexedRecord, include store.Include) []*indexedRecord {
	self := store.Key{Type: e.obj.Spec.Type, ID: e.id}
	var found []*indexedRecord
	if !include.Reverse {
		if include.Type != "" && include.Type != self.Type {
			return nil
		}
		c.localTargets(e, include.Param, func(to store.Key) bool {
			if other := c.index.live(to); other != nil && (include.Target == "" || include.Target == to.Type) {
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
