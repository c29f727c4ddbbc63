package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Nobody refers to what is gone, and nobody removes what is referred to: who refers to a
// record holds a shared lock on it from before looking whether it is there until the
// reference is visible; who removes it holds the other lock from before removing it, and
// looks for references in a later statement, whose snapshot has all of those that came first.

// dependsOnOthers reports whether an operation is to be decided in view of other records.
func dependsOnOthers(op store.Op) bool { return op.Unreferenced || len(op.Requires) > 0 }

// standing is what the operations of a transaction know of other records.
type standing struct {
	// live are the records that are required, and there, beside those written.
	live map[store.Key]bool
	// removed are the records that nothing may refer to, by their selves; bases are hashes
	// of the site's addresses.
	removed map[int64]store.Key
	bases   []int64
	// referrers are some of the records that refer to these.
	referrers map[int64][]store.Key
}

// lockWithTargets locks the records that are written, and for others that they stay: in one
// order, which all writers keep.
const lockWithTargets = `SELECT ` + stateColumns + `, k.written FROM unnest($2::int8[], $3::boolean[]) WITH ORDINALITY k(self, written, n)
	CROSS JOIN LATERAL (
		SELECT w.typ, w.id, w.spelling, w.rid, w.self, w.ver, w.upd, w.ixsum, w.method, w.deleted, w.claims, w.body, w.metadata
			FROM (SELECT * FROM res x WHERE x.site = $1 AND x.self = k.self AND k.written FOR UPDATE) w
		UNION ALL
		SELECT t.typ, t.id, t.spelling, t.rid, t.self, t.ver, t.upd, t.ixsum, t.method, t.deleted, NULL::bytea, '\x00'::bytea, NULL::bytea
			FROM (SELECT * FROM res x WHERE x.site = $1 AND x.self = k.self AND NOT k.written FOR KEY SHARE) t
	) r ORDER BY k.n`

// targets are the selves of the records that operations require beside those they write.
func (t *transaction) targets(ops []store.Op) []int64 {
	var selves []int64
	for _, op := range ops {
		for _, key := range op.Requires {
			if _, written := t.current[foldKey(key)]; !written {
				selves = append(selves, t.site.hash.self(key.Type, key.ID))
			}
		}
	}
	slices.Sort(selves)
	return slices.Compact(selves)
}

// queueLocks locks records to be written and their targets, and reads them.
func (t *transaction) queueLocks(batch *pgx.Batch, written, targets []int64) {
	t.standing.live = map[store.Key]bool{}
	selves := slices.Concat(written, targets)
	slices.Sort(selves)
	isWritten := make([]bool, len(selves))
	for i, self := range selves {
		_, isWritten[i] = slices.BinarySearch(written, self)
	}
	batch.Queue(lockWithTargets, t.site.site, selves, isWritten).Query(func(found pgx.Rows) error {
		for found.Next() {
			c := columnsOf(found)
			at, err := scanState(c)
			if err != nil {
				return err
			}
			isWritten := c.bool()
			if c.err != nil {
				return c.err
			}
			if isWritten {
				t.current[foldKey(at.key)] = at
			} else if !at.deleted {
				t.standing.live[foldKey(at.key)] = true
			}
		}
		return found.Err()
	})
}

// checkRequired checks that what operations require is there when all are done, and notes
// what nothing may refer to then.
func (t *transaction) checkRequired(ops []store.Op, results []store.Result) error {
	for i, op := range ops {
		var missing []store.Key
		for _, key := range op.Requires {
			if !t.isLive(key) {
				missing = append(missing, key)
			}
		}
		if len(missing) > 0 {
			return &store.MissingReferenceError{Key: op.Key, Missing: missing}
		}
		if op.Unreferenced && results[i].Outcome == store.Removed && !t.isLive(op.Key) {
			t.remove(op)
		}
	}
	return nil
}

func (t *transaction) isLive(key store.Key) bool {
	key = foldKey(key)
	if at, written := t.current[key]; written {
		return at != nil && !at.deleted
	}
	return t.standing.live[key]
}

func (t *transaction) remove(op store.Op) {
	s := &t.standing
	if s.removed == nil {
		s.removed, s.bases = map[int64]store.Key{}, []int64{t.site.hash.base("")}
	}
	s.removed[t.site.hash.self(op.Key.Type, op.Key.ID)] = op.Key
	for _, base := range op.Bases {
		s.bases = append(s.bases, t.site.hash.base(base))
	}
}

// mostReferrers is how many referring records are told of, of each type.
const mostReferrers = 10

// findReferrers steps from key to key of the rows that refer to a record, and takes the
// first ones of each: no more, however many refer. A record has a row for each base.
const findReferrers = `SELECT s.self, r.typ, COALESCE(r.spelling, r.id) FROM unnest($2::int8[]) s(self)
	CROSS JOIN LATERAL (
		WITH RECURSIVE k(key) AS (
			(SELECT x.key FROM ix_ref x WHERE x.site = $1 AND x.tgt = s.self ORDER BY x.key LIMIT 1)
			UNION ALL
			SELECT n.key FROM k CROSS JOIN LATERAL (SELECT x.key FROM ix_ref x WHERE x.site = $1 AND x.tgt = s.self AND x.key > k.key ORDER BY x.key LIMIT 1) n
		) SELECT k.key FROM k) k
	CROSS JOIN LATERAL (SELECT x.rid FROM ix_ref x WHERE x.site = $1 AND x.tgt = s.self AND x.key = k.key AND x.base = ANY($3::int8[]) GROUP BY x.rid ORDER BY x.rid LIMIT $4) f
	CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.rid = f.rid AND NOT x.deleted LIMIT 1) r`

// queueReferrers looks, when everything else is done, for what refers to removed records.
func (t *transaction) queueReferrers(batch *pgx.Batch) {
	s := &t.standing
	if len(s.removed) == 0 {
		return
	}
	s.referrers = map[int64][]store.Key{}
	selves := make([]int64, 0, len(s.removed))
	for self := range s.removed {
		selves = append(selves, self)
	}
	slices.Sort(s.bases)
	batch.Queue(findReferrers, t.site.site, selves, slices.Compact(s.bases), mostReferrers+1).Query(func(found pgx.Rows) error {
		for found.Next() {
			var self int64
			var by store.Key
			if err := found.Scan(&self, &by.Type, &by.ID); err != nil {
				return err
			}
			s.referrers[self] = append(s.referrers[self], by)
		}
		return found.Err()
	})
}

// checkUnreferenced checks that nothing refers to what was removed; where something does,
// it tells of the first of these records.
func (t *transaction) checkUnreferenced() error {
	var refused *store.ReferencedError
	for self, by := range t.standing.referrers {
		key := t.standing.removed[self]
		if refused == nil || compareKeys(key, refused.Key) < 0 {
			refused = &store.ReferencedError{Key: key}
			refused.By, refused.More = some(by)
		}
	}
	if refused == nil {
		return nil
	}
	return refused
}

// some are the first keys of each type, in order; more tells that there are others.
func some(keys []store.Key) (first []store.Key, more bool) {
	slices.SortFunc(keys, compareKeys)
	keys = slices.Compact(keys)
	of := map[string]int{}
	for _, key := range keys {
		if of[key.Type]++; of[key.Type] <= mostReferrers {
			first = append(first, key)
		}
	}
	return first, len(first) < len(keys)
}

// addMention adds a row that no search comes by: its key is no parameter's, and leads no
// path.
func (x *indexer) addMention(r *rows, typeName string, mention store.Mention) {
	target, base := x.hash.target(store.Reference(mention))
	r.references = append(r.references, referenceRow{x.hash.mentions(typeName), target, base})
}

// mentions is the key of what records of a type refer to by no parameter.
func (h hasher) mentions(typeName string) int64 { return h.of('m', typeName) }
