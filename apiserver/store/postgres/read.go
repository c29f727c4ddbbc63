package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-health/paddock/apiserver/store"
)

// foldID is the id that a record is stored under.
func foldID(id string) string { return strings.ToLower(id) }

// storable reports whether text can be an argument of type text at all.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// methods are stored by their place.
var methods = []store.Method{"", store.MethodPost, store.MethodPut, store.MethodPatch, store.MethodDelete}

func methodNumber(m store.Method) int16 {
	for i, known := range methods {
		if known == m {
			return int16(i)
		}
	}
	return 0
}

func methodOf(number int16) store.Method {
	if number < 0 || int(number) >= len(methods) {
		return ""
	}
	return methods[number]
}

// stateColumns are what scanState reads of res, named r.
const stateColumns = `r.typ, r.id, r.spelling, r.rid, r.self, r.ver, r.upd, r.ixsum, r.method, r.deleted, r.claims, r.body, r.metadata`

// scanState reads them from a row, of which there may be more columns.
func scanState(c *columns) (*state, error) {
	var at state
	var own texts
	packed, err := at.scan(c, &own)
	if err != nil {
		return nil, err
	}
	at.body, err = unpackBody(packed)
	return &at, err
}

// scan is scanState without the body, of which it returns what is stored.
func (at *state) scan(c *columns, kept *texts) (packed []byte, err error) {
	typ, id, spelling := c.text(), c.text(), c.text()
	at.rid, at.self, at.version = c.int64(), c.int64(), c.int64()
	at.updated, at.sum = time.UnixMilli(c.int64()).UTC(), c.int64()
	at.method, at.deleted = methodOf(c.int16()), c.bool()
	claims, body, beside := c.bytes(), c.bytes(), c.bytes()
	if c.err != nil {
		return nil, c.err
	}
	at.id = kept.keep(id)
	at.key = store.Key{Type: kept.keepRepeated(typ), ID: at.id}
	if len(spelling) > 0 {
		at.key.ID = kept.keep(spelling)
	}
	if at.metadata, err = unpackMetadata(beside); err != nil {
		return nil, err
	}
	at.claims, err = unpackClaims(claims)
	return body, err
}

// findRecord goes by the hash of type and id, which only one index has: the right one is
// used also by a plan that was made when the table was empty.
const (
	findRecord  = `SELECT r.self, ` + stateColumns + ` FROM res r WHERE r.site = $1 AND r.self = $2`
	findRecords = `SELECT r.self, ` + stateColumns + ` FROM res r WHERE r.site = $1 AND r.self = ANY($2)`
)

// find reads the newest version of a record; nil when there is none.
func (s *Site) find(ctx context.Context, key store.Key) (*state, error) {
	if !storable(key.Type) || !storable(key.ID) {
		return nil, nil
	}
	at, err := s.lookups.get(ctx, s.hash.self(key.Type, key.ID))
	if at == nil || err != nil {
		return nil, storeError("read record", err)
	}
	return at, at.is(key)
}

// findAll reads the newest versions of records by their hashes.
func (s *Site) findAll(ctx context.Context, selves []int64) (map[int64]lookedUp, error) {
	for attempt := 1; ; attempt++ {
		records, err := s.findOnce(ctx, selves)
		if attempt == mostReads || !isCut(err) {
			return records, err
		}
	}
}

// mostReads is how often a read is tried that meets connections which ended while they
// were idle, as when a database was started again.
const mostReads = 3

func (s *Site) findOnce(ctx context.Context, selves []int64) (map[int64]lookedUp, error) {
	sql, sought := findRecords, any(selves)
	if len(selves) == 1 {
		sql, sought = findRecord, selves[0]
	}
	rows, err := s.pool.Query(ctx, sql, s.site, sought)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	records := make(map[int64]lookedUp, len(selves))
	for len(records) < len(selves) && rows.Next() {
		c := columnsOf(rows)
		self := c.int64()
		at, err := scanState(c)
		records[self] = lookedUp{at, err}
	}
	return records, rows.Err()
}

// is checks that a row found by its hash is the record's.
func (at *state) is(key store.Key) error {
	if at.key.Type != key.Type || at.id != foldID(key.ID) {
		return fmt.Errorf("read record: the hash of %s/%s is that of another record", key.Type, key.ID)
	}
	return nil
}

// Get implements store.Store.
func (s *Site) Get(ctx context.Context, key store.Key) (store.Record, error) {
	at, err := s.find(ctx, key)
	switch {
	case err != nil:
		return store.Record{}, err
	case at == nil:
		return store.Record{}, store.ErrNotFound
	case at.deleted:
		return store.Record{}, &store.DeletedError{Key: at.key, Version: at.version, Updated: at.updated}
	default:
		return s.record(at), nil
	}
}

// GetVersion implements store.Store.
func (s *Site) GetVersion(ctx context.Context, key store.Key, version int64) (store.Record, error) {
	if !storable(key.Type) || !storable(key.ID) {
		return store.Record{}, store.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	const find = `SELECT ` + versionColumns + ` FROM res r CROSS JOIN LATERAL (` + oneVersion + `) v
		WHERE r.site = $1 AND r.self = $2`
	rows, err := s.pool.Query(ctx, find, s.site, s.hash.self(key.Type, key.ID), version)
	if err != nil {
		return store.Record{}, storeError("read version", err)
	}
	found, err := pgx.CollectOneRow(rows, func(row pgx.CollectableRow) (store.Record, error) { return s.scanVersion(columnsOf(row)) })
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Record{}, store.ErrNotFound
	}
	return found, storeError("read version", err)
}

// oneVersion is a version of the record r: the newest one is current until the end of time.
const oneVersion = `SELECT r.self, r.ver, r.rid, r.upd, 9223372036854775807 AS until, r.method, r.deleted, r.body WHERE r.ver = $3
	UNION ALL SELECT x.self, x.ver, x.rid, x.upd, x.until, x.method, x.deleted, x.body FROM hist x WHERE x.site = $1 AND x.self = $2 AND x.ver = $3`

// versionColumns are what scanVersion reads of a version, named v, and its record, named r.
const versionColumns = `r.typ, COALESCE(r.spelling, r.id), v.ver, v.rid, v.upd, v.until = 9223372036854775807, r.claims, r.metadata, v.method, v.deleted, v.body`

// scanVersion reads them from a row, of which there may be more columns.
func (s *Site) scanVersion(c *columns) (store.Record, error) {
	var r store.Record
	r.Key.Type, r.Key.ID, r.Version = string(c.text()), string(c.text()), c.int64()
	rid := c.int64()
	var kept texts
	r.UID, r.Created, r.Updated = s.uid(rid, &kept), createdAt(rid), time.UnixMilli(c.int64()).UTC()
	newest, claims, packed := c.bool(), c.bytes(), c.bytes()
	r.Method, r.Deleted = methodOf(c.int16()), c.bool()
	body := c.bytes()
	if c.err != nil {
		return store.Record{}, c.err
	}
	var err error
	if newest {
		if r.Claims, err = unpackClaims(claims); err != nil {
			return store.Record{}, err
		}
		beside, err := unpackMetadata(packed)
		if err != nil {
			return store.Record{}, err
		}
		r.Revision = revision(rid, r.Version, beside.changes, &kept)
		r.Metadata, r.MetadataVersion = beside.text, beside.of()
	}
	r.Body, err = unpackBody(body)
	return r, err
}
