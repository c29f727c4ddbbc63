package postgres

import (
	"bytes"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// change is a statement that brings one record from one state to the next, with its history
// and its index rows. It does nothing, and says 0, where the record is not in the state
// that it starts from any more.
type change struct {
	statement *statement
	sql       string
	// paths are those that the database may not know yet.
	paths []path
}

// change writes the statement of a plan; before are the index rows that the current state
// has, timed writes the table t with the rid and the time of the change.
func (s *Site) change(p *plan, current *state, before rows, timed func(*statement, *plan, *state) string) change {
	if p.action == doAnnotate {
		return s.annotate(current, &p.next)
	}
	c := change{statement: s.statement()}
	st := c.statement
	var next rows
	if p.action != doPurge && !p.next.deleted {
		next = s.index.rows(p.next.key.Type, p.next.body)
		p.next.sum = next.sum()
	}
	var parts []string
	switch p.action {
	case doCreate:
		parts = []string{timed(st, p, current), insertRecord(st, &p.next, next.marks)}
	case doUpdate:
		parts = append([]string{timed(st, p, current)}, updateRecord(st, current, &p.next, next.marks)...)
	default:
		parts = purgeRecord(st, current)
	}
	added, gone := next, before
	if current != nil && !current.deleted {
		added, gone = next.without(&before), before.without(&next)
	}
	if current != nil {
		parts = append(parts, gone.remove(st, current.rid, "w")...)
	}
	if p.action != doPurge {
		parts = append(parts, added.insert(st, "(SELECT rid FROM t)", "w")...)
	}
	if c.paths = s.newPaths(next.paths); len(c.paths) > 0 {
		parts = append(parts, insertPaths(st, c.paths))
	}
	c.sql = "WITH " + strings.Join(parts, ",\n") + "\nSELECT rid, upd FROM w"
	return c
}

func insertRecord(st *statement, next *state, marks []int64) string {
	return "w AS (INSERT INTO res (site, typ, id, spelling, rid, self, ver, upd, ixsum, method, deleted, marks, claims, body, metadata) VALUES ($1, " +
		strings.Join([]string{
			st.arg(next.key.Type), st.arg(next.id), st.arg(spelling(next)), "(SELECT rid FROM t)", st.arg(next.self),
			st.arg(next.version), "(SELECT upd FROM t)", st.arg(next.sum), st.arg(methodNumber(next.method)),
			"false", st.arg(nonNil(marks)), st.arg(packClaims(next.claims)), st.arg(packBody(next.body)),
			st.arg(next.metadata.pack()),
		}, ", ") + ") ON CONFLICT DO NOTHING RETURNING rid, upd)"
}

// updateRecord supersedes a version: what it was goes into the history as the database
// has it.
func updateRecord(st *statement, current, next *state, marks []int64) []string {
	body := noBody
	if !next.deleted {
		body = packBody(next.body)
	}
	set := strings.Join([]string{
		"rid = (SELECT rid FROM t)", "ver = " + st.arg(next.version), "upd = (SELECT upd FROM t)", "ixsum = " + st.arg(next.sum),
		"method = " + st.arg(methodNumber(next.method)), "deleted = " + st.arg(next.deleted), "marks = " + st.arg(nonNil(marks)),
		"claims = " + st.arg(packClaims(next.claims)), "body = " + st.arg(body),
	}, ", ")
	if packed := next.metadata.pack(); !bytes.Equal(packed, current.metadata.pack()) {
		set += ", metadata = " + st.arg(packed)
	}
	at := "site = $1 AND self = " + st.arg(current.self)
	return []string{
		"w AS (UPDATE res SET " + set + " WHERE " + at + stillAt(st, current) + " RETURNING rid, upd)",
		"h AS (INSERT INTO hist (site, typ, self, ver, rid, upd, until, method, deleted, body) SELECT site, typ, self, ver, rid, upd, " +
			"(SELECT upd FROM t), method, deleted, body FROM res WHERE " + at + " AND EXISTS (SELECT FROM w))",
	}
}

func purgeRecord(st *statement, current *state) []string {
	return []string{
		"w AS (DELETE FROM res WHERE site = $1 AND self = " + st.arg(current.self) + stillAt(st, current) + " RETURNING rid, upd)",
		"h AS (DELETE FROM hist WHERE site = $1 AND self = " + st.arg(current.self) + " AND EXISTS (SELECT FROM w))",
	}
}

// stillAt guards a statement by the state that it was decided on.
func stillAt(st *statement, current *state) string {
	beside := " AND metadata IS NULL"
	if packed := current.metadata.pack(); packed != nil {
		beside = " AND metadata = " + st.arg(packed)
	}
	return " AND rid + 0 = " + st.arg(current.rid) + " AND ver = " + st.arg(current.version) + beside
}

// spelling is the id as first stored, nil where it is in lower case.
func spelling(at *state) *string {
	if at.key.ID == at.id {
		return nil
	}
	return &at.key.ID
}

func nonNil(marks []int64) []int64 {
	if marks == nil {
		return []int64{}
	}
	return marks
}

// indexed are the index rows that a record's body gives today. They are outdated where
// they are not those that were written: another extractor wrote them.
func (s *Site) indexed(current *state) (r rows, outdated bool) {
	if current == nil || current.deleted {
		return rows{}, false
	}
	r = s.index.rows(current.key.Type, current.body)
	return r, r.sum() != current.sum
}

func (s *Site) newPaths(paths []path) []path {
	s.mu.Lock()
	defer s.mu.Unlock()
	var fresh []path
	for _, p := range paths {
		if _, known := s.paths[p]; !known {
			fresh = append(fresh, p)
		}
	}
	return fresh
}

// mostPaths bounds what is remembered of paths: targets are what bodies say.
const mostPaths = 10_000

// rememberPaths takes note of paths that a write left in the database.
func (s *Site) rememberPaths(paths []path) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range paths {
		if len(s.paths) < mostPaths {
			s.paths[p] = struct{}{}
		}
	}
}

func insertPaths(st *statement, paths []path) string {
	typ, param, target := split3(paths, func(p path) (string, string, string) { return p.typ, p.param, p.target })
	table, names := st.unnest([]column{{"typ", "text", typ}, {"param", "text", param}, {"target", "text", target}})
	return "p AS (INSERT INTO ix_path (site, " + names + ") SELECT $1, " + names + " FROM " + table +
		" WHERE EXISTS (SELECT FROM w) ON CONFLICT DO NOTHING)"
}

// result is what the contract wants to know of a plan that was carried out.
func (s *Site) result(p *plan, current *state) store.Result {
	result := store.Result{Outcome: p.outcome}
	switch {
	case p.action == doCreate || p.action == doUpdate || p.action == doAnnotate:
		result.Record = s.record(&p.next)
	case p.action == doNothing && current != nil:
		result.Record = s.record(current)
	}
	return result
}
