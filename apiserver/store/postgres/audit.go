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
)

// Audit returns the storage of the site's audit log: the table audit, which is partitioned by day.
func (s *Store) Audit() audit.Storage { return auditLog{s} }

type auditLog struct{ *Store }

// checkViolation is the SQLSTATE of a row that belongs to no partition.
const checkViolation = "23514"

// Append implements audit.Storage. One INSERT stores all entries.
func (s auditLog) Append(ctx context.Context, entries []*audit.Entry) error {
	rows := newAuditRows(entries)
	err := s.insert(ctx, rows)
	if hasCode(err, checkViolation) {
		for _, day := range daysOf(entries) {
			if err := s.makePartition(ctx, day); err != nil {
				return err
			}
		}
		err = s.insert(ctx, rows)
	}
	return storeError("append to the audit log", err)
}

// auditRows are the entries to insert, as one array per column with an element per entry. The
// INSERT makes one row for each record that an entry names. Arrays with an element per row would be
// more expensive to send than all other data.
type auditRows struct {
	at, id []int64
	// entities are the records that each entry names, as one text each.
	entities       []string
	caller, action []string
	outcome        []int16
	interactions   []string
	entry          [][]byte
}

func newAuditRows(entries []*audit.Entry) *auditRows {
	n := len(entries)
	r := &auditRows{
		at: make([]int64, n), id: make([]int64, n), entities: make([]string, n), caller: make([]string, n), action: make([]string, n),
		outcome: make([]int16, n), interactions: make([]string, n), entry: make([][]byte, n),
	}
	size := 0
	for _, e := range entries {
		size += e.SizeHint()
	}
	texts := make([]byte, 0, size) // the memory of all entries
	for i, e := range entries {
		start := len(texts)
		texts = e.AppendJSON(texts)
		r.at[i], r.id[i], r.entities[i] = e.Time.UnixMicro(), e.ID, string(e.Records.Entities())
		r.caller[i], r.action[i], r.outcome[i] = e.Caller, string(e.Action), int16(e.Outcome()) //nolint:gosec // at most 12
		r.interactions[i], r.entry[i] = e.Interaction, texts[start:len(texts):len(texts)]
	}
	return r
}

// insert inserts the rows. Only the first row of an entry has the entry and its searchable values.
func (s auditLog) insert(ctx context.Context, r *auditRows) error {
	const sql = `INSERT INTO audit (site, at, id, n, entity, caller, action, outcome, interaction, entry)
		SELECT $1, e.at, e.id, r.n - 1, r.entity, CASE WHEN r.n = 1 THEN e.caller END, CASE WHEN r.n = 1 THEN e.action END,
			CASE WHEN r.n = 1 THEN e.outcome END, CASE WHEN r.n = 1 THEN e.interaction END, CASE WHEN r.n = 1 THEN e.entry END
		FROM unnest($2::int8[], $3::int8[], $4::text[], $5::text[], $6::text[], $7::int2[], $8::text[], $9::bytea[])
			AS e (at, id, entities, caller, action, outcome, interaction, entry),
			unnest(CASE WHEN e.entities = '' THEN ARRAY[''] ELSE string_to_array(e.entities, E'\n') END) WITH ORDINALITY AS r (entity, n)
		ON CONFLICT DO NOTHING`
	_, err := s.pool.Exec(ctx, sql, s.site, r.at, r.id, r.entities, r.caller, r.action, r.outcome, r.interactions, r.entry)
	return err
}

// Search implements audit.Storage.
func (s auditLog) Search(ctx context.Context, query audit.Query) ([]audit.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	sql, args := auditQuery(s.site, query)
	rows, err := s.pool.Query(ctx, sql, args...)
	if err == nil {
		var found []audit.Entry
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (audit.Entry, error) {
			var text []byte
			if err := row.Scan(&text); err != nil {
				return audit.Entry{}, err
			}
			return audit.Parse(text)
		})
		if err == nil {
			return found, nil
		}
	}
	if isQueryLimit(err) {
		return nil, audit.ErrTooSlow
	}
	return nil, storeError("search the audit log", err)
}

// auditQuery returns the SQL of a query. A query for one record scans the index of records, any
// other the primary key. Both are in the order of time, so the scan ends when the page is full.
func auditQuery(site int32, query audit.Query) (sql string, args []any) {
	var b strings.Builder
	argument := func(value any) string {
		args = append(args, value)
		return "$" + strconv.Itoa(len(args))
	}
	k := "e"
	b.WriteString(`SELECT e.entry FROM audit e`)
	if query.Entity != "" {
		k = "k"
		b.WriteString(` JOIN audit k ON k.site = e.site AND k.at = e.at AND k.id = e.id`)
	}
	b.WriteString(` WHERE e.n = 0 AND e.site = ` + argument(site) + ` AND ` + k + `.site = ` + argument(site))
	if query.Entity != "" {
		b.WriteString(` AND k.entity <> '' AND k.entity = ` + argument(query.Entity))
	}
	if !query.From.IsZero() {
		b.WriteString(` AND ` + k + `.at >= ` + argument(query.From.UnixMicro()))
	}
	if !query.Until.IsZero() {
		b.WriteString(` AND ` + k + `.at < ` + argument(query.Until.UnixMicro()))
	}
	if (query.After != audit.Position{}) {
		b.WriteString(` AND ` + k + `.at <= ` + argument(query.After.Time)) // redundant, but Postgres needs it to skip partitions
		b.WriteString(` AND (` + k + `.at, ` + k + `.id) < (` + argument(query.After.Time) + `, ` + argument(query.After.ID) + `)`)
	}
	if query.Caller != "" {
		b.WriteString(` AND e.caller = ` + argument(query.Caller))
	}
	if query.Action != "" {
		b.WriteString(` AND e.action = ` + argument(string(query.Action)))
	}
	if len(query.Interactions) > 0 {
		b.WriteString(` AND e.interaction = ANY(` + argument(query.Interactions) + `)`)
	}
	if len(query.Outcomes) > 0 {
		outcomes := make([]int16, len(query.Outcomes))
		for i, outcome := range query.Outcomes {
			outcomes[i] = int16(outcome) //nolint:gosec // at most 12
		}
		b.WriteString(` AND e.outcome = ANY(` + argument(outcomes) + `)`)
	}
	b.WriteString(` ORDER BY ` + k + `.at DESC, ` + k + `.id DESC LIMIT ` + argument(query.Count))
	return b.String(), args
}

// auditLock is the first key of the advisory lock that a process holds while it creates or drops
// partitions.
const auditLock = 0x70616175

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
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, 0)`, auditLock); err != nil {
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

// Trim implements audit.Storage. It also creates the partitions of the next days. A partition is
// dropped when no site of the database retains its entries. A site with a shorter retention deletes
// its own entries.
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

// dropPartitions drops the partitions that end before a time, each in its own transaction.
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
			// Writers wait as long as DROP waits for its lock, so it must give up soon. The next call of
			// Trim tries again.
			if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '1s'`); err != nil {
				return err
			}
			var ours bool
			if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1, 0)`, auditLock).Scan(&ours); err != nil || !ours {
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
