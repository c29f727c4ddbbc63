package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/outbox"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// The sequences of the events of one subject are in the order in which their writes commit. For
// this, a write locks the subject before it takes the next value of the sequence, and holds the
// lock until it commits. To avoid deadlocks, a write locks subjects after it has locked all rows
// that it changes, and in ascending order of the locks' keys.

// subjectLocks returns the keys of the locks on the subjects of events, in the order in which a
// write must take them.
func (s *Store) subjectLocks(events []store.Event) []int64 {
	keys := []int64{}
	for _, event := range events {
		if event.Subject != "" {
			keys = append(keys, s.hash.Of('e', event.Subject))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func packEvents(events []store.Event) (packed, envelopes [][]byte) {
	for _, event := range events {
		head, envelope := outbox.Pack(event)
		packed, envelopes = append(packed, head), append(envelopes, envelope)
	}
	return packed, envelopes
}

// insertEvents returns the CTEs that store events with the change of a record, which is the CTE w.
func (s *Store) insertEvents(st *sqlplan.Statement, p *decision, events []store.Event) []string {
	at := "l.upd"
	if p.Action == store.ActionPurge { // here the time in w is that of the purged version
		ms := clockMillis
		if s.now != nil {
			ms = st.Arg(s.now().UnixMilli()) + "::int8"
		}
		at = "GREATEST(" + ms + ", l.upd + 1)"
	}
	insert := "o AS (INSERT INTO outbox (site, seq, at, version, event, envelope) SELECT $1, nextval('outbox_seq'), " + at + ", " +
		st.Arg(p.After.Version) + "::int8, "
	packed, envelopes := packEvents(events)
	if keys := s.subjectLocks(events); len(events) == 1 && len(keys) == 1 { // the usual case, for which this form is faster
		return []string{insert + st.Arg(packed[0]) + "::bytea, " + st.Arg(envelopes[0]) + "::bytea FROM (SELECT w.upd, pg_advisory_xact_lock(" +
			st.Arg(keys[0]) + "::int8) FROM w OFFSET 0) l)"}
	}
	return []string{
		// This reads w first, so that the row of the record is locked before the subjects.
		"l AS MATERIALIZED (SELECT max(k.upd) AS upd FROM (SELECT w.upd, pg_advisory_xact_lock(k.key) FROM w LEFT JOIN unnest(" +
			st.Arg(s.subjectLocks(events)) + "::int8[]) k(key) ON true OFFSET 0) k HAVING count(*) > 0)",
		insert + "e.event, e.envelope FROM l CROSS JOIN unnest(" + st.Arg(packed) + "::bytea[], " + st.Arg(envelopes) + "::bytea[]) e(event, envelope))",
	}
}

// insertBatchEvents returns the CTEs that store the events of a batch of writes, or none. The CTE r
// must have the rids and times of the writes.
func (s *Store) insertBatchEvents(st *sqlplan.Statement, batch []*pendingWrite) []string {
	var events []store.Event
	var of []int32
	var versions []int64
	for i, w := range batch {
		for _, event := range w.events {
			events, of, versions = append(events, event), append(of, int32(i+1)), append(versions, w.After.Version)
		}
	}
	if len(events) == 0 {
		return nil
	}
	packed, envelopes := packEvents(events)
	return []string{
		// This reads r first, so that the rows of the records are locked before the subjects.
		"l AS MATERIALIZED (SELECT count(*) FROM (SELECT pg_advisory_xact_lock(k.key) FROM r CROSS JOIN unnest(" + st.Arg(s.subjectLocks(events)) +
			"::int8[]) k(key) OFFSET 0) k)",
		"o AS (INSERT INTO outbox (site, seq, at, version, event, envelope) SELECT $1, nextval('outbox_seq'), r.upds[e.of], e.version, e.event, e.envelope" +
			" FROM l CROSS JOIN r CROSS JOIN unnest(" + st.Arg(of) + "::int4[], " + st.Arg(versions) + "::int8[], " + st.Arg(packed) + "::bytea[], " + st.Arg(envelopes) +
			"::bytea[]) e(of, version, event, envelope) WHERE r.rids[e.of] IS NOT NULL)",
	}
}

type transactionEvents struct {
	events   []store.Event
	at       []int64
	versions []int64
}

func (t *transaction) addEvents(op store.Op, p *decision) {
	for _, event := range p.Events(op) {
		t.events.events = append(t.events.events, event)
		t.events.at = append(t.events.at, p.After.Updated.UnixMilli())
		t.events.versions = append(t.events.versions, p.After.Version)
	}
}

const (
	// lockSubjects must be a statement of its own, so that the snapshots of later statements include
	// what was committed before the locks were acquired.
	lockSubjects = `SELECT pg_advisory_xact_lock(k.key) FROM sites s CROSS JOIN LATERAL unnest($2::int8[]) WITH ORDINALITY k(key, n) WHERE s.site = $1`
	insertOutbox = `INSERT INTO outbox (site, seq, at, version, event, envelope) SELECT $1, nextval('outbox_seq'), e.*
		FROM unnest($2::int8[], $3::int8[], $4::bytea[], $5::bytea[]) e`
)

// queueEvents queues the statements that lock the subjects of the events and insert the events. The
// statements that change records must be queued before.
func (t *transaction) queueEvents(batch *pgx.Batch) {
	if len(t.events.events) == 0 {
		return
	}
	if keys := t.site.subjectLocks(t.events.events); len(keys) > 0 {
		batch.Queue(lockSubjects, t.site.site, keys)
	}
	packed, envelopes := packEvents(t.events.events)
	batch.Queue(insertOutbox, t.site.site, t.events.at, t.events.versions, packed, envelopes)
}

// Number returns the number of the site in its database, which is the value of the column "site" in
// all rows of the site.
func (s *Store) Number() int32 { return s.site }

// eventType is the type of the records that keep the ids of posted events, by which an event that
// is posted again is recognized.
const eventType = "Event"

// purgeBatch is the number of records that one transaction purges.
const purgeBatch = 200

// PurgeEvents purges those records of posted events that were last written before a time. Errors:
// those of Write. Records purged before an error remain purged.
func (s *Store) PurgeEvents(ctx context.Context, before time.Time) error {
	for {
		rows, err := s.pool.Query(ctx, `SELECT COALESCE(spelling, id) FROM res WHERE site = $1 AND typ = $2 AND upd < $3 ORDER BY upd LIMIT $4`,
			s.site, eventType, before.UnixMilli(), purgeBatch)
		if err != nil {
			return storeError("find old events", err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return storeError("find old events", err)
		}
		if len(ids) == 0 {
			return nil
		}
		ops := make([]store.Op, len(ids))
		for i, id := range ids {
			ops[i] = store.Op{Kind: store.Purge, Key: store.Key{Type: eventType, ID: id}}
		}
		if _, err := s.Write(ctx, ops); err != nil {
			return err
		}
	}
}
