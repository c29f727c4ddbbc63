package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

// Restore implements store.Archive. One transaction stores all records that have no error in their
// store.Restored. It inserts new rows by COPY.
func (s *Store) Restore(ctx context.Context, records []store.Dumped) ([]store.Restored, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeouts*s.timeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		r := &restore{site: s, records: records, results: make([]store.Restored, len(records))}
		err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return r.run(ctx, tx) })
		if err == nil {
			s.cacheReferencePaths(r.paths)
			s.analyzeIfGrown(ctx, len(r.rows.rids))
			return r.results, nil
		}
		// Another attempt can succeed only if another process has written one of the records in the
		// meantime, or if tables of earlier releases are gone.
		if attempt == maxAttempts || !hasCode(err, uniqueViolation, serializationFailure, deadlockDetected) && !errors.Is(err, errStale) && !s.lostEarlier(ctx, err) {
			return nil, storeError("restore records", err)
		}
		if err := backOff(ctx, attempt); err != nil {
			return nil, err
		}
	}
}

// KeepsVersions implements store.Archive.
func (s *Store) KeepsVersions() bool { return true }

// restore is one attempt to restore records.
type restore struct {
	site    *Store
	records []store.Dumped
	results []store.Restored
	now     time.Time
	// current has the newest stored versions of the records that exist, by the index in records.
	current map[int]*state
	// past is for records whose newest dumped version is older than the stored one. It has the stored
	// version with the same number, by the index in records.
	past   map[int]*store.Record
	claims claimTable
	// numbers are the indexes in records, by self.
	numbers  map[int64]int
	replaced *pgx.Batch
	rows     restoredRows
	paths    []indexrow.ReferencePath
}

// run restores the records in a transaction. Errors: errStale.
func (r *restore) run(ctx context.Context, tx pgx.Tx) error {
	if err := r.lock(ctx, tx); err != nil {
		return err
	}
	r.replaced = &pgx.Batch{}
	for i := range r.records {
		r.results[i].Outcome, r.results[i].Err = r.add(i)
	}
	if r.replaced.Len() > 0 {
		if err := tx.SendBatch(ctx, r.replaced).Close(); err != nil {
			return err
		}
	}
	if err := r.rows.copy(ctx, tx, r.site.site); err != nil {
		return err
	}
	if r.paths = r.site.unknownReferencePaths(r.paths); len(r.paths) == 0 {
		return nil
	}
	st := r.site.planIndex.Statement()
	_, err := tx.Exec(ctx, "WITH w AS (SELECT 1), "+indexrow.InsertPaths(st, r.paths)+" SELECT FROM w", st.Args...)
	return err
}

// lock takes the locks of a write with claims, in the same order, and reads what they protect.
func (r *restore) lock(ctx context.Context, tx pgx.Tx) error {
	s := r.site
	batch := &pgx.Batch{}
	batch.Queue(setStatementTimeout, s.site, s.loadTimeoutMillis())
	s.queueBeginWrite(batch, &r.now)
	var lines []string
	r.numbers = map[int64]int{}
	selves := make([]int64, 0, len(r.records))
	for i := range r.records {
		d := &r.records[i]
		if !isStorable(d.Key.Type) || !isStorable(d.Key.ID) || len(d.Versions) == 0 {
			continue // add reports that the record is invalid
		}
		self := s.hash.Self(d.Key.Type, d.Key.ID)
		if _, twice := r.numbers[self]; twice {
			continue // add reports the duplicate
		}
		r.numbers[self], selves = i, append(selves, self)
		for _, claim := range d.Newest().Claims {
			lines = append(lines, claim.Line)
		}
	}
	slices.Sort(lines)
	t := transaction{site: s, claimTable: claimTable{hash: s.hash, lines: slices.Compact(lines)}}
	if len(t.claimTable.lines) > 0 {
		t.queueClaimLocks(batch)
	}
	slices.Sort(selves)
	r.current, r.past = map[int]*state{}, map[int]*store.Record{}
	batch.Queue(lockRecords, s.site, selves).Query(func(found pgx.Rows) error {
		for found.Next() {
			at, err := scanState(columnsOf(found))
			if err != nil {
				return err
			}
			r.current[r.numbers[at.self]] = at
		}
		return found.Err()
	})
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	r.claims = t.claimTable
	return r.readPast(ctx, tx)
}

// readPast sets past to versions that it reads from the database.
func (r *restore) readPast(ctx context.Context, tx pgx.Tx) error {
	const find = `SELECT ` + versionColumns + ` FROM res r CROSS JOIN LATERAL (` + oneVersion + `) v WHERE r.site = $1 AND r.self = $2`
	batch := &pgx.Batch{}
	for i, at := range r.current {
		d := &r.records[i]
		if d.Newest().Version >= at.version {
			continue
		}
		batch.Queue(find, r.site.site, at.self, d.Newest().Version).Query(func(found pgx.Rows) error {
			for found.Next() {
				version, err := r.site.scanVersion(columnsOf(found))
				if err != nil {
					return err
				}
				r.past[i] = &version
			}
			return found.Err()
		})
	}
	if batch.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, batch).Close()
}

// add adds the rows of a record, unless the database has all of its versions, claims and metadata.
// Errors: those of store.Restored.
func (r *restore) add(i int) (store.Outcome, error) {
	d := &r.records[i]
	if !isStorable(d.Key.Type) || !isStorable(d.Key.ID) {
		return 0, &store.InvalidDumpError{At: "id", Problem: "must be valid UTF-8 without NUL"}
	}
	if err := d.Check(); err != nil {
		return 0, err
	}
	if r.numbers[r.site.hash.Self(d.Key.Type, d.Key.ID)] != i {
		return 0, &store.InvalidDumpError{At: "id", Problem: "is that of another record of the same request; send each record once"}
	}
	current := r.current[i]
	var record *store.Record
	if current != nil {
		if err := current.checkKey(d.Key); err != nil {
			return 0, err
		}
		found := r.site.record(current)
		record = &found
	}
	if d.IsOlder(record) {
		if past := r.past[i]; past == nil || !store.SameVersion(d.Newest(), past) {
			return 0, &store.DivergedError{Key: d.Key, Version: d.Newest().Version}
		}
		return store.Unchanged, nil
	}
	missing, changed, err := d.Missing(record, r.now)
	if err != nil || len(missing) == 0 && !changed {
		return store.Unchanged, err
	}
	outcome := store.Updated
	if current == nil {
		outcome = store.Created
	}
	return outcome, r.addVersions(d, current, missing)
}

// addVersions adds the rows of the missing versions of a record. If no version is missing, it
// replaces claims and metadata of the stored newest version. Errors: *store.ClaimError.
func (r *restore) addVersions(d *store.Dumped, current *state, missing []store.Record) error {
	s := r.site
	at := state{id: foldID(d.Key.ID), key: d.Key, self: s.hash.Self(d.Key.Type, d.Key.ID)}
	if current != nil {
		at = *current
	}
	newest := d.Newest()
	claims := store.ActiveClaims(newest.Claims, r.now)
	if err := r.claim(&at, claims); err != nil {
		return err
	}
	rows, before, outdated := s.indexRows(current)
	labels := versionLabels{rows.Labels, rows.Links, current != nil && !current.deleted}
	for i := range missing {
		v := &missing[i]
		if i == 0 && current == nil || !v.Created.Equal(indexrow.CreatedAt(at.rid)) {
			at.rid = s.rids.Next(v.Created)
		}
		at.version, at.updated, at.method, at.deleted, at.body = v.Version, v.Updated, v.Method, v.Deleted, v.Body
		isNewest := i == len(missing)-1
		if !v.Deleted {
			// All index rows are needed only for the newest version, and for the one before a newest
			// tombstone: a tombstone keeps the checksum of the version before it. Other versions need
			// only their labels.
			if isNewest || i+1 == len(missing)-1 && missing[i+1].Deleted {
				rows = s.index.Rows(d.Key.Type, v.Body)
			} else {
				rows = indexrow.Rows{}
				rows.Labels, rows.Links = s.index.Labels(d.Key.Type, s.index.Extractor.Extract(d.Key.Type, v.Body.JSON))
			}
			labels = versionLabels{rows.Labels, rows.Links, true}
		}
		if !isNewest {
			r.rows.addPast(s.site, &at, missing[i+1].Updated, labels)
		}
	}
	at.metadata.changes++ // a change of metadata alone makes another revision
	if len(missing) > 0 {
		at.metadata.changes = 0
	}
	at.claims, at.metadata.text, at.metadata.version = claims, newest.Metadata, newest.MetadataVersion
	if at.sum = 0; labels.known {
		at.sum = rows.Sum()
	}
	if at.deleted {
		rows = indexrow.Rows{}
	}
	row := recordRow(s.site, &at, &rows, labels)
	if current != nil {
		r.replace(current, before, outdated, missing, row)
	} else {
		r.rows.records = append(r.rows.records, row)
	}
	r.rows.rids, r.rows.index, r.paths = append(r.rows.rids, at.rid), append(r.rows.index, rows), append(r.paths, rows.Paths...)
	return nil
}

// claim adds the rows of the claims of a record. Errors: *store.ClaimError.
func (r *restore) claim(at *state, claims []store.Claim) error {
	if len(claims) == 0 {
		r.claims.release(at.self)
		return nil
	}
	if err := r.claims.set(at, claims, r.now); err != nil {
		return err
	}
	for _, claim := range r.claims.rows {
		if claim.self == at.self {
			r.rows.claims = append(r.rows.claims, []any{r.site.site, claim.line, claim.self, claim.from, claim.until, claim.expiry})
		}
	}
	return nil
}

// replace queues the statements that replace the newest version of a record by a row, and remove its
// claims and its index rows. If versions are missing, the replaced version is copied to hist.
func (r *restore) replace(current *state, before indexrow.Rows, outdated bool, missing []store.Record, row []any) {
	st := r.site.planIndex.Statement()
	at := "site = $1 AND self = " + st.Arg(current.self)
	set := make([]string, 0, len(recordColumns))
	for i, column := range recordColumns {
		if !slices.Contains(keyColumns, column) {
			set = append(set, column+" = "+st.Arg(row[i]))
		}
	}
	parts := []string{"w AS (UPDATE res SET " + strings.Join(set, ", ") + " WHERE " + at + isUnchanged(st, current) + " RETURNING rid)"}
	if len(missing) > 0 {
		parts = append(parts, "h AS (INSERT INTO hist ("+strings.Join(pastColumns, ", ")+") SELECT site, typ, self, ver, rid, upd, "+
			st.Arg(missing[0].Updated.UnixMilli())+", method, deleted, labelled, labels, links, body FROM res WHERE "+at+")")
	}
	parts = append(parts, "c AS (DELETE FROM claim WHERE "+at+")")
	if outdated {
		for _, sql := range r.site.earlier().RemoveAll(current.isPacked) {
			r.replaced.Queue(sql, r.site.site, []int64{current.rid})
		}
	} else {
		parts = append(parts, before.Remove(st, current.rid, "w")...)
	}
	r.replaced.Queue("WITH "+strings.Join(parts, ",\n")+"\nSELECT rid FROM w", st.Args...).QueryRow(func(row pgx.Row) error {
		err := row.Scan(new(int64))
		if errors.Is(err, pgx.ErrNoRows) {
			return errStale
		}
		return err
	})
}
