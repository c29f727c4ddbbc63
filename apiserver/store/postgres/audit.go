package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// Audit returns the storage of the site's audit log: the table audit, which is partitioned by day.
func (s *Store) Audit() audit.Storage { return auditLog{s} }

type auditLog struct{ *Store }

// StoresWithWrites implements audit.WithWrites.
func (auditLog) StoresWithWrites() {}

// checkViolation is the SQLSTATE of a row that belongs to no partition.
const checkViolation = "23514"

// Append implements audit.Storage. One INSERT stores all entries. If the partition of a day is missing,
// Append creates the partitions of all days of the entries and repeats the INSERT. If some entries are
// stored already, it repeats the INSERT without them.
func (s auditLog) Append(ctx context.Context, entries []*audit.Entry) error {
	rows := s.newRows(entries, s.packEntries(entries))
	err := s.insert(ctx, rows, "")
	if hasCode(err, checkViolation) {
		for _, day := range daysOf(entries) {
			if err := s.makePartition(ctx, day); err != nil {
				return err
			}
		}
		err = s.insert(ctx, rows, "")
	}
	if hasCode(err, uniqueViolation) {
		err = s.insert(ctx, rows, " ON CONFLICT DO NOTHING") // which costs more
	}
	return storeError("append to the audit log", err)
}

// auditRows are the entries to insert, as one array per column with an element per entry.
type auditRows struct {
	at, id []int64
	// records are the hashes (Hasher.Self) of the records that each entry names, as the text of an
	// array: one text for each entry is cheaper to send than an array of arrays. The text is empty if
	// the entry names no record.
	records        []string
	caller, action []string
	outcome        []int16
	interactions   []string
	entry          [][]byte
}

// packEntries returns the stored forms of entries.
func (s auditLog) packEntries(entries []*audit.Entry) [][]byte {
	packer := entryPacker{plain: s.earlier().AllTokens}
	size := 0
	for _, e := range entries {
		size += e.SizeHint()
	}
	all := make([]byte, 0, size) // the memory of all entries
	packed := make([][]byte, len(entries))
	var json []byte
	for i, e := range entries {
		start := len(all)
		json = e.AppendJSON(json[:0])
		all = packer.append(all, json)
		packed[i] = all[start:len(all):len(all)]
	}
	return packed
}

// newRows returns the rows of entries. packed are their stored forms.
func (s auditLog) newRows(entries []*audit.Entry, packed [][]byte) *auditRows {
	n := len(entries)
	r := &auditRows{
		at: make([]int64, n), id: make([]int64, n), records: make([]string, n), caller: make([]string, n), action: make([]string, n),
		outcome: make([]int16, n), interactions: make([]string, n), entry: packed,
	}
	var records []byte
	for i, e := range entries {
		records = s.appendHashes(records[:0], e.Records)
		r.at[i], r.id[i], r.records[i] = e.Time.UnixMicro(), e.ID, string(records)
		r.caller[i], r.action[i], r.outcome[i] = e.Caller, string(e.Action), int16(e.Outcome()) //nolint:gosec // at most 12
		r.interactions[i] = e.Interaction
	}
	return r
}

// appendHashes appends the hashes of records as the text of an array, or nothing if there are none.
func (s auditLog) appendHashes(text []byte, records audit.Records) []byte {
	separator := byte('{')
	for record := range records.All() {
		typeName, id, _ := strings.Cut(record, "/")
		text = strconv.AppendInt(append(text, separator), s.hash.Self(typeName, id), 10)
		separator = ','
	}
	if len(text) > 0 {
		text = append(text, '}')
	}
	return text
}

func (s auditLog) insert(ctx context.Context, r *auditRows, onConflict string) error {
	st := s.planIndex.Statement()
	_, err := s.pool.Exec(ctx, r.insert(st)+onConflict, st.Args...)
	return err
}

// insert returns the statement that inserts the rows. A condition on e.n, the number of a row from 1, may
// follow it.
func (r *auditRows) insert(st *sqlplan.Statement) string {
	const columns = "at, id, records, caller, action, outcome, interaction, entry"
	return "INSERT INTO audit (site, " + columns + ") SELECT $1, e.at, e.id, NULLIF(e.records, '')::int8[], e.caller, e.action, e.outcome, e.interaction, e.entry FROM unnest(" +
		st.Arg(r.at) + "::int8[], " + st.Arg(r.id) + "::int8[], " + st.Arg(r.records) + "::text[], " + st.Arg(r.caller) + "::text[], " +
		st.Arg(r.action) + "::text[], " + st.Arg(r.outcome) + "::int2[], " + st.Arg(r.interactions) + "::text[], " + st.Arg(r.entry) +
		"::bytea[]) WITH ORDINALITY AS e (" + columns + ", n)"
}

// searchSpans are the lengths of the periods that a query for one record searches in turn, each
// before the query's upper bound or the current time, until the page is full. The last attempt has
// only the bounds of the query itself. Postgres sorts all entries of the period that name the record,
// and a record that is often read has many.
var searchSpans = []time.Duration{time.Hour, day, 30 * day}

// Search implements audit.Storage.
func (s auditLog) Search(ctx context.Context, query audit.Query) ([]audit.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if query.Entity != "" {
		end := time.Now()
		if !query.Until.IsZero() && query.Until.Before(end) {
			end = query.Until
		}
		if (query.After != audit.Position{}) {
			end = time.UnixMicro(query.After.Time)
		}
		for _, span := range searchSpans {
			recent := query
			recent.From = end.Add(-span)
			if recent.From.Before(query.From) {
				break
			}
			if found, err := s.search(ctx, recent); err != nil || len(found) == query.Count {
				return found, err
			}
		}
	}
	return s.search(ctx, query)
}

func (s auditLog) search(ctx context.Context, query audit.Query) ([]audit.Entry, error) {
	if texts := append([]string{query.Caller, string(query.Action), query.Entity}, query.Interactions...); !isStorable(strings.Join(texts, "")) {
		return nil, nil // Postgres refuses such a text
	}
	sql, args := s.queryFor(query)
	batch := &pgx.Batch{} // one round trip and one transaction
	if query.Entity != "" {
		// The sessions of the pool have enable_bitmapscan and enable_sort off. A query for one record
		// needs both: it uses a GIN index, which allows only bitmap scans and returns no order.
		batch.Queue(`SELECT set_config('enable_bitmapscan', 'on', true), set_config('enable_sort', 'on', true)`)
	}
	var found []audit.Entry
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (audit.Entry, error) {
			var text []byte
			if err := row.Scan(&text); err != nil {
				return audit.Entry{}, err
			}
			return parseEntry(text)
		})
		return err
	})
	err := s.pool.SendBatch(ctx, batch).Close()
	if isQueryLimit(err) {
		return nil, audit.ErrTooSlow
	}
	return found, storeError("search the audit log", err)
}

// queryFor returns the SQL of a query. A query for one record collects its entries by the index of
// records and sorts them. Any other query scans the primary key in the order of time, and ends when
// the page is full.
func (s auditLog) queryFor(query audit.Query) (sql string, args []any) {
	args = []any{s.site}
	argument := func(value any) string {
		args = append(args, value)
		return "$" + strconv.Itoa(len(args))
	}
	var times, rest strings.Builder
	if !query.From.IsZero() {
		times.WriteString(` AND at >= ` + argument(query.From.UnixMicro()))
	}
	if !query.Until.IsZero() {
		times.WriteString(` AND at < ` + argument(query.Until.UnixMicro()))
	}
	if (query.After != audit.Position{}) {
		times.WriteString(` AND at <= ` + argument(query.After.Time)) // redundant, but Postgres needs it to skip partitions
		rest.WriteString(` AND (at, id) < (` + argument(query.After.Time) + `, ` + argument(query.After.ID) + `)`)
	}
	if query.Caller != "" {
		rest.WriteString(` AND caller = ` + argument(query.Caller))
	}
	if query.Action != "" {
		rest.WriteString(` AND action = ` + argument(string(query.Action)))
	}
	if len(query.Interactions) > 0 {
		rest.WriteString(` AND interaction = ANY(` + argument(query.Interactions) + `)`)
	}
	if len(query.Outcomes) > 0 {
		outcomes := make([]int16, len(query.Outcomes))
		for i, outcome := range query.Outcomes {
			outcomes[i] = int16(outcome) //nolint:gosec // at most 12
		}
		rest.WriteString(` AND outcome = ANY(` + argument(outcomes) + `)`)
	}
	end := rest.String() + ` ORDER BY at DESC, id DESC LIMIT ` + argument(query.Count)
	if query.Entity == "" {
		return `SELECT entry FROM audit WHERE n = 0 AND site = $1` + times.String() + end, args
	}
	typeName, id, _ := strings.Cut(query.Entity, "/")
	// Each OFFSET 0 makes Postgres use the index on the record, even before a partition has statistics.
	// The part after UNION ALL finds the entries of earlier releases, which have a row for each
	// record. The row with n = 0 has the entry.
	return `SELECT entry FROM (
		SELECT * FROM (SELECT * FROM audit WHERE records @> ARRAY[` + argument(s.hash.Self(typeName, id)) + `::int8]` + times.String() + ` OFFSET 0) e WHERE site = $1
		UNION ALL SELECT e.* FROM (SELECT at, id FROM audit WHERE site = $1 AND entity <> '' AND entity = ` + argument(query.Entity) + times.String() + ` OFFSET 0) k
			CROSS JOIN LATERAL (SELECT * FROM audit WHERE site = $1 AND at = k.at AND id = k.id AND n = 0 LIMIT 1) e
		) e WHERE n = 0` + end, args
}

// The settings of partitions. Each partition has the entries of one day in UTC, which is part of
// its name.
const (
	partitionPrefix = "audit_"
	partitionDay    = "20060102"
	day             = 24 * time.Hour
	// daysAhead is the number of days after today whose partitions are created in advance.
	daysAhead = 2
)

func daysOf(entries []*audit.Entry) []time.Time {
	var days []time.Time
	for _, e := range entries {
		if at := e.Time.UTC().Truncate(day); len(days) == 0 || !days[len(days)-1].Equal(at) {
			days = append(days, at)
		}
	}
	return days
}

// makePartition creates the partition of a day, if it does not exist. It creates a table and then
// attaches it to the partitioned table, so that writers of other partitions need not wait.
func (s auditLog) makePartition(ctx context.Context, at time.Time) error {
	name := partitionPrefix + at.Format(partitionDay)
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var there bool
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, 0)`, schema.AuditLock); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, name).Scan(&there); err != nil || there {
			return err
		}
		if _, err := tx.Exec(ctx, `CREATE TABLE `+name+` (LIKE audit INCLUDING ALL)`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, fmt.Sprintf(`ALTER TABLE audit ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)`,
			name, at.UnixMicro(), at.Add(day).UnixMicro()))
		return err
	})
	return storeError("create a partition of the audit log", err)
}

// Trim implements audit.Storage. It also creates the partitions of today and the next daysAhead days.
// A partition is dropped when no site of the database retains its entries. A site with a shorter
// retention deletes its own entries.
func (s auditLog) Trim(ctx context.Context, retention time.Duration) error {
	now := time.Now().UTC()
	for ahead := range daysAhead + 1 {
		if err := s.makePartition(ctx, now.Truncate(day).Add(time.Duration(ahead)*day)); err != nil {
			return err
		}
	}
	seconds := int64(retention / time.Second)
	if _, err := s.pool.Exec(ctx, `UPDATE sites SET audit_retention = $2 WHERE site = $1 AND audit_retention <> $2`, s.site, seconds); err != nil {
		return storeError("store the retention of the audit log", err)
	}
	var longest int64
	if err := s.pool.QueryRow(ctx, `SELECT max(audit_retention) FROM sites`).Scan(&longest); err != nil {
		return storeError("read the retention of audit logs", err)
	}
	err := s.dropPartitions(ctx, now.Add(-time.Duration(longest)*time.Second))
	if seconds < longest {
		err = errors.Join(err, s.deleteBefore(ctx, now.Add(-retention)))
	}
	return err
}

// dropPartitions drops the partitions that end at or before a time, each in its own transaction. It
// leaves a partition for the next call if another session holds schema.AuditLock.
func (s auditLog) dropPartitions(ctx context.Context, before time.Time) error {
	rows, err := s.pool.Query(ctx, `SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'audit'::regclass`)
	if err != nil {
		return storeError("list the partitions of the audit log", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return storeError("list the partitions of the audit log", err)
	}
	for _, name := range names {
		at, err := time.Parse(partitionPrefix+partitionDay, name)
		if err != nil || at.Add(day).After(before) {
			continue
		}
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			// Writers wait as long as DROP waits for its lock, so DROP must give up soon. Trim then
			// returns an error, and its next call tries again.
			if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '1s'`); err != nil {
				return err
			}
			var ours bool
			if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1, 0)`, schema.AuditLock).Scan(&ours); err != nil || !ours {
				return err
			}
			_, err := tx.Exec(ctx, `DROP TABLE IF EXISTS `+name)
			return err
		})
		if err != nil {
			return storeError("drop a partition of the audit log", err)
		}
	}
	return nil
}

// deleteBefore deletes the site's entries before a time, in batches to keep statements short.
func (s auditLog) deleteBefore(ctx context.Context, before time.Time) error {
	const batch = 5000
	const sql = `DELETE FROM audit WHERE site = $1 AND at < COALESCE(
		(SELECT at + 1 FROM audit WHERE site = $1 AND at < $2 ORDER BY at OFFSET $3 LIMIT 1), $2)`
	for {
		done, err := s.pool.Exec(ctx, sql, s.site, before.UnixMicro(), batch)
		if err != nil {
			return storeError("delete old entries of the audit log", err)
		}
		if done.RowsAffected() <= batch {
			return nil
		}
	}
}
