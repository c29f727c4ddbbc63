package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
)

// Op.Requires and Op.Unreferenced guarantee that no live record refers to a removed one. A write
// with Op.Requires takes a shared lock on each required record before it checks that the record
// exists. It holds the lock until it commits. A write with Op.Unreferenced locks the record
// exclusively before it removes it. In a later statement it then searches for references. The
// snapshot of that statement includes all writes that held the shared lock before.

// dependsOnOthers reports whether the outcome of an operation depends on other records.
func dependsOnOthers(op store.Op) bool { return op.Unreferenced || len(op.Requires) > 0 }

// referenceLocks is the state of a transaction's operations that depend on other records.
type referenceLocks struct {
	// live are the required records that are live and that the transaction does not write.
	live map[store.Key]bool
	// removed are the records that operations with Op.Unreferenced remove, by their selves (the hashes
	// of type and id). bases are the hashes of the site's base URLs.
	removed map[int64]store.Key
	bases   []int64
	// referrers maps the selves of removed records to some of the records that refer to them.
	referrers map[int64][]store.Key
	// nameable maps the selves of removed records to their Op.Referrers. It has no entry for a record
	// whose Op.Referrers is nil.
	nameable map[int64]func(recordType string) (store.Condition, error)
}

// lockWithRequired selects the records to write FOR UPDATE and the required ones FOR KEY SHARE,
// both in the order of $2. To avoid deadlocks, all writers pass $2 in ascending order.
const lockWithRequired = `SELECT ` + stateColumns + `, k.written FROM unnest($2::int8[], $3::boolean[]) WITH ORDINALITY k(self, written, n)
	CROSS JOIN LATERAL (
		SELECT w.typ, w.id, w.spelling, w.rid, w.self, w.ver, w.upd, w.ixsum, w.method, w.deleted, w.claims, w.body, w.metadata, w.packed
			FROM (SELECT * FROM res x WHERE x.site = $1 AND x.self = k.self AND k.written FOR UPDATE) w
		UNION ALL
		SELECT t.typ, t.id, t.spelling, t.rid, t.self, t.ver, t.upd, t.ixsum, t.method, t.deleted, NULL::bytea, '\x00'::bytea, NULL::bytea, t.packed
			FROM (SELECT * FROM res x WHERE x.site = $1 AND x.self = k.self AND NOT k.written FOR KEY SHARE) t
	) r ORDER BY k.n`

// requiredSelves returns the selves of required records that the transaction does not write.
func (t *transaction) requiredSelves(ops []store.Op) []int64 {
	var selves []int64
	for _, op := range ops {
		for _, key := range op.Requires {
			if _, written := t.current[key.Folded()]; !written {
				selves = append(selves, t.site.hash.Self(key.Type, key.ID))
			}
		}
	}
	slices.Sort(selves)
	return slices.Compact(selves)
}

// queueLocksWithRequired queues the statement that reads and locks the records to write and the
// required ones.
func (t *transaction) queueLocksWithRequired(batch *pgx.Batch, written, targets []int64) {
	t.referenceLocks.live = map[store.Key]bool{}
	selves := slices.Concat(written, targets)
	slices.Sort(selves)
	isWritten := make([]bool, len(selves))
	for i, self := range selves {
		_, isWritten[i] = slices.BinarySearch(written, self)
	}
	batch.Queue(lockWithRequired, t.site.site, selves, isWritten).Query(func(found pgx.Rows) error {
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
				t.current[at.key.Folded()] = at
			} else if !at.deleted {
				t.referenceLocks.live[at.key.Folded()] = true
			}
		}
		return found.Err()
	})
}

// checkRequired checks that all required records are live after the last operation. Those in
// Op.Unseen count as not live. It also calls noteRemoved for the records that operations with
// Op.Unreferenced have removed. Errors: *store.MissingReferenceError.
func (t *transaction) checkRequired(ops []store.Op, results []store.Result) error {
	for i, op := range ops {
		var missing []store.Key
		unseen := make(map[store.Key]bool, len(op.Unseen))
		for _, key := range op.Unseen {
			unseen[key] = true
		}
		for _, key := range op.Requires {
			if unseen[key] || !t.isLive(key) {
				missing = append(missing, key)
			}
		}
		if len(missing) > 0 {
			return &store.MissingReferenceError{Key: op.Key, Missing: missing}
		}
		if op.Unreferenced && results[i].Outcome == store.Removed && !t.isLive(op.Key) {
			t.noteRemoved(op)
		}
	}
	return nil
}

func (t *transaction) isLive(key store.Key) bool {
	key = key.Folded()
	if at, written := t.current[key]; written {
		return at != nil && !at.deleted
	}
	return t.referenceLocks.live[key]
}

func (t *transaction) noteRemoved(op store.Op) {
	s := &t.referenceLocks
	if s.removed == nil {
		s.removed, s.bases = map[int64]store.Key{}, []int64{t.site.hash.Base("")}
		s.nameable = map[int64]func(string) (store.Condition, error){}
	}
	self := t.site.hash.Self(op.Key.Type, op.Key.ID)
	s.removed[self] = op.Key
	if op.Referrers != nil {
		s.nameable[self] = op.Referrers
	}
	for _, base := range op.Bases {
		s.bases = append(s.bases, t.site.hash.Base(base))
	}
}

// maxReferrers is the maximum number of referring records of each type in a *store.ReferencedError.
// If there are more, the error has More set.
const maxReferrers = 10

// referrerKeys is the SQL of a lateral join that returns the distinct keys (hashes of type and
// parameter) of the rows that refer to record s. It skips through the index from key to key.
const referrerKeys = `
	CROSS JOIN LATERAL (
		WITH RECURSIVE k(key) AS (
			(SELECT x.key FROM ix_ref x WHERE x.site = $1 AND x.tgt = s.self ORDER BY x.key LIMIT 1)
			UNION ALL
			SELECT n.key FROM k CROSS JOIN LATERAL (SELECT x.key FROM ix_ref x WHERE x.site = $1 AND x.tgt = s.self AND x.key > k.key ORDER BY x.key LIMIT 1) n
		) SELECT k.key FROM k) k`

// findReferrers selects the first referring records of each key. Its cost does not depend on how
// many records refer to the removed ones. A record can refer to another one by several base URLs,
// with a row for each, so rows are grouped.
const findReferrers = `SELECT s.self, r.typ, COALESCE(r.spelling, r.id) FROM unnest($2::int8[]) s(self)` + referrerKeys + `
	CROSS JOIN LATERAL (SELECT x.rid FROM ix_ref x WHERE x.site = $1 AND x.tgt = s.self AND x.key = k.key AND x.base = ANY($3::int8[]) GROUP BY x.rid ORDER BY x.rid LIMIT $4) f
	CROSS JOIN LATERAL (SELECT * FROM res x WHERE x.site = $1 AND x.rid = f.rid AND NOT x.deleted LIMIT 1) r`

// queueReferrers queues the search for records that refer to removed ones. It must be called after
// all other statements of the transaction were queued.
func (t *transaction) queueReferrers(batch *pgx.Batch) {
	s := &t.referenceLocks
	if len(s.removed) == 0 {
		return
	}
	s.referrers = map[int64][]store.Key{}
	selves := make([]int64, 0, len(s.removed))
	for self := range s.removed {
		selves = append(selves, self)
	}
	slices.Sort(s.bases)
	batch.Queue(findReferrers, t.site.site, selves, slices.Compact(s.bases), maxReferrers+1).Query(func(found pgx.Rows) error {
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

// checkUnreferenced checks that no live record refers to a removed one. Errors:
// *store.ReferencedError, for the first removed record, by type and id, to which a live record
// refers.
func (t *transaction) checkUnreferenced() error {
	var refused *store.ReferencedError
	for self, by := range t.referenceLocks.referrers {
		key := t.referenceLocks.removed[self]
		if refused == nil || compareKeys(key, refused.Key) < 0 {
			refused = &store.ReferencedError{Key: key}
			refused.By, refused.More = firstOfEachType(by)
		}
	}
	if refused == nil {
		return nil
	}
	return refused
}

// nameReferrers returns the error refused with only those referring records that it may name
// (Op.Referrers). If Op.Referrers is nil, it returns refused unchanged. If the error may name none,
// only More is set. The caller must have rolled back the transaction: in it, the removed record is
// not visible, but the condition of Op.Referrers may depend on it.
func (t *transaction) nameReferrers(ctx context.Context, refused *store.ReferencedError) error {
	self := t.site.hash.Self(refused.Key.Type, refused.Key.ID)
	named := t.referenceLocks.nameable[self]
	if named == nil {
		return refused
	}
	by, err := t.visibleReferrers(ctx, self, t.referenceLocks.referrers[self], named)
	if err != nil {
		return storeError("find the referring records that an error may name", err)
	}
	visible := &store.ReferencedError{Key: refused.Key}
	visible.By, visible.More = firstOfEachType(by)
	visible.More = visible.More || len(by) == 0
	return visible
}

// visibleReferrers returns the first records of each key that refer to a record and that an error
// may name. referring must have at least one record of each type that refers to it.
func (t *transaction) visibleReferrers(ctx context.Context, self int64, referring []store.Key, named func(string) (store.Condition, error)) ([]store.Key, error) {
	st := t.site.planIndex.Statement()
	tests := t.site.planIndex.Tests(ctx, st, t.referenceLocks.bases)
	visible, seen := "CASE r.typ", map[string]bool{}
	for _, key := range referring {
		if seen[key.Type] {
			continue
		}
		seen[key.Type] = true
		condition, err := named(key.Type)
		if err != nil {
			return nil, err
		}
		test, err := tests.Of(key.Type, "r", condition)
		if err != nil {
			return nil, err
		}
		visible += " WHEN " + st.Arg(key.Type) + " THEN " + test
	}
	found, err := t.site.pool.Query(ctx, `SELECT f.typ, f.id FROM (SELECT `+st.Arg(self)+`::int8) s(self)`+referrerKeys+`
	CROSS JOIN LATERAL (SELECT DISTINCT ON (x.rid) r.typ, COALESCE(r.spelling, r.id) AS id FROM ix_ref x
		JOIN res r ON r.site = $1 AND r.rid = x.rid AND NOT r.deleted
		WHERE x.site = $1 AND x.tgt = s.self AND x.key = k.key AND x.base = ANY(`+tests.Bases()+`) AND `+visible+` ELSE FALSE END
		ORDER BY x.rid LIMIT `+st.Arg(maxReferrers+1)+`) f`, st.Args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (key store.Key, err error) {
		return key, row.Scan(&key.Type, &key.ID)
	})
}

// firstOfEachType returns the first maxReferrers keys of each type, sorted and without duplicates.
// more reports whether it left out further keys. It sorts keys in place.
func firstOfEachType(keys []store.Key) (first []store.Key, more bool) {
	slices.SortFunc(keys, compareKeys)
	keys = slices.Compact(keys)
	of := map[string]int{}
	for _, key := range keys {
		if of[key.Type]++; of[key.Type] <= maxReferrers {
			first = append(first, key)
		}
	}
	return first, len(first) < len(keys)
}
