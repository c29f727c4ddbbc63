package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// A client polls with the latest time that it has received. It misses nothing if no version appears
// afterwards with an earlier time, whichever process writes it. Therefore the time of a write is
// read from the clock of the database, while the write holds a shared advisory lock. The key of the
// lock contains a time that is not later than that of the write. The write holds the lock until it
// commits. The watermark is the oldest time in the keys of all held locks, or the current time if
// there are none. Histories and searches by time return only versions from before the watermark.

const (
	// clockMillis is the SQL of the database's clock, in milliseconds since 1970.
	clockMillis = "floor(extract(epoch FROM clock_timestamp()) * 1000)::int8"
	// lockMillis is the modulus of the time in milliseconds that is the second key of a lock. It is a
	// power of two. The first key is the negative site number, which distinguishes these locks from
	// those on the lines of claims.
	lockMillis = 1 << 31
)

// beginWrite is the SQL of a table with one row, which takes the lock of a write and then reads the
// time of the write as column ms. OFFSET 0 makes Postgres run the inner query first.
const beginWrite = "(SELECT " + clockMillis + " AS ms FROM (SELECT pg_advisory_xact_lock_shared(-s.site, (" + clockMillis +
	" % 2147483648)::int4) FROM sites s WHERE s.site = $1 OFFSET 0) l)"

// timeTable returns the CTE t for a change by one statement. It has one row: the rid of the record
// and the time of the change. It takes the lock of a write, unless Options.Now is set.
func (s *Store) timeTable(st *sqlplan.Statement, p *decision, current *state) string {
	ms := beginWrite
	if s.now != nil {
		ms = "(SELECT " + st.Arg(s.now().UnixMilli()) + "::int8 AS ms)"
	}
	updated := "c.ms"
	if current != nil {
		updated = "GREATEST(c.ms, " + st.Arg(current.updated.UnixMilli()+1) + ")"
	}
	var rid string
	if current == nil || current.deleted {
		rid = ridOf("u.upd", st.Arg(s.rids.Low())+"::int8")
	} else {
		rid = st.Arg(p.next.rid) + "::int8"
	}
	return "t AS MATERIALIZED (SELECT " + rid + " AS rid, u.upd FROM (SELECT " + updated + " AS upd FROM " + ms + " c OFFSET 0) u)"
}

// knownTimeTable returns the CTE t, as timeTable does, for a change whose rid and time are known.
func knownTimeTable(st *sqlplan.Statement, p *decision) string {
	return "t AS (SELECT " + st.Arg(p.next.rid) + "::int8 AS rid, " + st.Arg(p.next.updated.UnixMilli()) + "::int8 AS upd)"
}

// queueBeginWrite queues the statement that takes the lock of a transaction and stores its time in
// into. If Options.Now is set, it stores that time at once and queues nothing.
func (s *Store) queueBeginWrite(batch *pgx.Batch, into *time.Time) {
	if s.now != nil {
		*into = s.now().UTC().Truncate(time.Millisecond)
		return
	}
	batch.Queue("SELECT ms FROM "+beginWrite+" c", s.site).QueryRow(func(row pgx.Row) error {
		var ms int64
		err := row.Scan(&ms)
		*into = time.UnixMilli(ms).UTC()
		return err
	})
}

// noteNewest sets newest to the time of a write of this process, if that is later.
func (s *Store) noteNewest(updated time.Time) {
	for ms := updated.UnixMilli(); ; {
		newest := s.newest.Load()
		if ms <= newest || s.newest.CompareAndSwap(newest, ms) {
			return
		}
	}
}
