package postgres

// few is up to how many records of a list are put in order: a walk along the values of a
// parameter costs less than to rank many, as rids alone are tested against the list. So does
// a walk in the order of creation that finds a page soon.
func (s *source) few(part int) int {
	few := s.site.bounds.few
	if byParam(s.order) && s.parts[part].list.testable() {
		few = s.site.bounds.ranked
	}
	if first := s.parts[0].list; s.page > 0 && first.walked != 0 && s.order.ByCreation() && s.firstDecides() {
		few = min(few, fewOf(s.site.entries(s.ctx, first.walked), s.page))
	}
	return few
}

// firstDecides reports whether nothing is asked beside the first list but facets, which it
// takes in.
func (s *source) firstDecides() bool {
	if s.hides(s.typeName) {
		return false
	}
	for _, part := range s.parts[1:] {
		if part.list == nil || part.list.rank != rankFacet {
			return false
		}
	}
	return true
}

// taken is a table with the rids of a list as an array, in one row: to write a row for each
// and to count them takes as long as the list does.
type taken struct {
	table string
	// tooMany is how many rids there are if the list has more than were wanted.
	tooMany string
}

func (t taken) size() string { return "(SELECT cardinality(rids) FROM " + t.table + ")" }

// take reads a list, up to one record more than few, unless it is remembered to have more.
func (s *source) take(l *list, few int) (t taken, tried bool, err error) {
	before := s.written()
	rids, err := l.from()
	if err != nil {
		return taken{}, false, err
	}
	t.table = s.name("few")
	if !l.few {
		if s.remembers {
			id := longID(rids, s.args[before.args:], few)
			if list, known := s.site.longLists.get(id); known {
				s.skipped, s.slow = append(s.skipped, id), s.slow || list.slow
				s.unwrite(before)
				return taken{}, false, nil
			}
			s.tried = append(s.tried, id)
		}
		t.tooMany = s.arg(few + 1)
		rids = "SELECT rid FROM (" + rids + ") l LIMIT " + t.tooMany
	}
	s.with = append(s.with, t.table+" AS MATERIALIZED (SELECT COALESCE(array_agg(rid), '{}') AS rids FROM ("+rids+") l)")
	return t, true, nil
}

// fromFew reads the records of a list that was taken, if it has not too many.
func (s *source) fromFew(t taken, gates []string, met int) (string, error) {
	where := append([]string{}, gates...)
	if t.tooMany != "" {
		where = append(where, "cardinality(rids) < "+t.tooMany)
	}
	driver := "SELECT DISTINCT rid FROM (SELECT unnest(rids) AS rid FROM " + t.table + whereAll(where) + ") l" + whereAll(s.behindRid("rid")) +
		" ORDER BY rid " + s.direction()
	return s.fromRids(driver, met, &t)
}
