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
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
)

func foldID(id string) string { return strings.ToLower(id) }

// isStorable reports whether Postgres accepts a text as a value of type text.
func isStorable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// methods are the methods of versions. The database stores the index in this list.
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

// stateColumns are the columns of res, named r, that scanState reads. pageColumns are for records
// that are only read, not written: they make state.isPacked true for each record, so that Postgres
// need not read the row up to its last column. shownColumns are what both have.
const (
	stateColumns = shownColumns + `r.packed IS NOT DISTINCT FROM (r.ixsum & 2147483647)::int4`
	pageColumns  = shownColumns + `TRUE`
	shownColumns = `r.typ, r.id, r.spelling, r.rid, r.self, r.ver, r.upd, r.ixsum, r.method, r.deleted, r.claims, r.body, r.metadata, `
)

// scanState reads a state from the next columns of a row.
func scanState(c *columns) (*state, error) {
	var at state
	var own texts
	packed, err := at.scan(c, &own)
	if err != nil {
		return nil, err
	}
	at.body, err = unpackBody(packed)
	return &at, decodeError(at.key, at.version, err)
}

// decodeError wraps an error of decoding a stored version with the name of the version. It returns nil
// if err is nil.
func decodeError(key store.Key, version int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("decode version %d of %s/%s: %w", version, key.Type, key.ID, err)
}

// scan reads a state without its body, and returns the body as it is stored. The stored body is valid
// as long as a slice that columns.bytes returns. It allocates strings in kept.
func (at *state) scan(c *columns, kept *texts) (packed []byte, err error) {
	typ, id, spelling := c.text(), c.text(), c.text()
	at.rid, at.self, at.version = c.int64(), c.int64(), c.int64()
	at.updated, at.sum = time.UnixMilli(c.int64()).UTC(), c.int64()
	at.method, at.deleted = methodOf(c.int16()), c.bool()
	claims, body, meta := c.bytes(), c.bytes(), c.bytes()
	at.isPacked = c.bool()
	if c.err != nil {
		return nil, c.err
	}
	at.id = kept.keep(id)
	at.key = store.Key{Type: kept.keepRepeated(typ), ID: at.id}
	if len(spelling) > 0 {
		at.key.ID = kept.keep(spelling)
	}
	if at.metadata, err = unpackMetadata(meta); err != nil {
		return nil, decodeError(at.key, at.version, err)
	}
	at.claims, err = unpackClaims(claims)
	return body, decodeError(at.key, at.version, err)
}

// The statements that find records by self, the hash of type and id. Only one index has that
// column, so even a plan that was made while the table was empty uses the right index.
const (
	findRecord  = `SELECT r.self, ` + stateColumns + ` FROM res r WHERE r.site = $1 AND r.self = $2`
	findRecords = `SELECT r.self, ` + stateColumns + ` FROM res r WHERE r.site = $1 AND r.self = ANY($2)`
)

// find returns the newest version of a record, or nil if there is none.
func (s *Store) find(ctx context.Context, key store.Key) (*state, error) {
	if !isStorable(key.Type) || !isStorable(key.ID) {
		return nil, nil
	}
	at, err := s.loader.get(ctx, s.hash.Self(key.Type, key.ID))
	if err != nil {
		return nil, storeError("read record "+key.Type+"/"+key.ID, err)
	}
	if at == nil {
		return nil, nil
	}
	return at, at.checkKey(key)
}

// findAll reads the newest versions of records by their selves. If a connection is closed, it tries
// again. It makes at most maxReadAttempts attempts.
func (s *Store) findAll(ctx context.Context, selves []int64) (map[int64]readResult, error) {
	for attempt := 1; ; attempt++ {
		records, err := s.findOnce(ctx, selves)
		if attempt == maxReadAttempts || !isDisconnected(err) {
			return records, err
		}
	}
}

// maxReadAttempts is the maximum number of attempts of a read. After a restart of the database,
// each connection that was idle fails once.
const maxReadAttempts = 3

func (s *Store) findOnce(ctx context.Context, selves []int64) (map[int64]readResult, error) {
	sql, sought := findRecords, any(selves)
	if len(selves) == 1 {
		sql, sought = findRecord, selves[0]
	}
	rows, err := s.pool.Query(ctx, sql, s.site, sought)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	records := make(map[int64]readResult, len(selves))
	for len(records) < len(selves) && rows.Next() {
		c := columnsOf(rows)
		self := c.int64()
		at, err := scanState(c)
		records[self] = readResult{at, err}
	}
	return records, rows.Err()
}

// checkKey returns an error if a record that was found by its hash has another key, because two
// keys have the same hash.
func (at *state) checkKey(key store.Key) error {
	if at.key.Type != key.Type || at.id != foldID(key.ID) {
		return fmt.Errorf("read record %s/%s: another record has the same hash of type and id; choose another id", key.Type, key.ID)
	}
	return nil
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Record, error) {
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
func (s *Store) GetVersion(ctx context.Context, key store.Key, version int64) (store.Record, error) {
	if !isStorable(key.Type) || !isStorable(key.ID) {
		return store.Record{}, store.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	const find = `SELECT ` + versionColumns + ` FROM res r CROSS JOIN LATERAL (` + oneVersion + `) v
		WHERE r.site = $1 AND r.self = $2`
	rows, err := s.pool.Query(ctx, find, s.site, s.hash.Self(key.Type, key.ID), version)
	if err != nil {
		return store.Record{}, versionError(key, version, err)
	}
	found, err := pgx.CollectOneRow(rows, func(row pgx.CollectableRow) (store.Record, error) { return s.scanVersion(columnsOf(row)) })
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Record{}, store.ErrNotFound
	}
	return found, versionError(key, version, err)
}

// versionError is storeError for a read of a version.
func versionError(key store.Key, version int64, err error) error {
	if err == nil {
		return nil
	}
	return storeError(fmt.Sprintf("read version %d of %s/%s", version, key.Type, key.ID), err)
}

// oneVersion selects one version of the record r. The column until of the newest version is the
// greatest integer.
const oneVersion = `SELECT r.self, r.ver, r.rid, r.upd, 9223372036854775807 AS until, r.method, r.deleted, r.body WHERE r.ver = $3
	UNION ALL SELECT x.self, x.ver, x.rid, x.upd, x.until, x.method, x.deleted, x.body FROM hist x WHERE x.site = $1 AND x.self = $2 AND x.ver = $3`

// versionColumns are the columns that scanVersion reads of a version, named v, and of its record,
// named r.
const versionColumns = `r.typ, COALESCE(r.spelling, r.id), v.ver, v.rid, v.upd, v.until = 9223372036854775807, r.claims, r.metadata, v.method, v.deleted, v.body`

// scannedVersion is a version that was read from a row, and what the UID and the revision are made of.
type scannedVersion struct {
	// record lacks UID, Revision and Body.
	record store.Record
	rid    int64
	newest bool
	// changes is metadata.changes of the newest version.
	changes uint64
	// body is the stored body. It is valid until the next row.
	body []byte
}

// scan reads a version from the next columns of a row. It allocates strings in kept.
func (v *scannedVersion) scan(c *columns, kept *texts) error {
	typ, id := c.text(), c.text()
	r := &v.record
	r.Version, v.rid = c.int64(), c.int64()
	r.Created, r.Updated = indexrow.CreatedAt(v.rid), time.UnixMilli(c.int64()).UTC()
	newest, claims, packed := c.bool(), c.bytes(), c.bytes()
	r.Method, r.Deleted = methodOf(c.int16()), c.bool()
	v.newest, v.body = newest, c.bytes()
	if c.err != nil {
		return c.err
	}
	r.Key = store.Key{Type: kept.keepRepeated(typ), ID: kept.keep(id)}
	if !newest {
		return nil
	}
	var err error
	if r.Claims, err = unpackClaims(claims); err != nil {
		return decodeError(r.Key, r.Version, err)
	}
	meta, err := unpackMetadata(packed)
	v.changes, r.Metadata, r.MetadataVersion = meta.changes, meta.text, meta.of()
	return decodeError(r.Key, r.Version, err)
}

// scanVersion reads a version from the next columns of a row.
func (s *Store) scanVersion(c *columns) (store.Record, error) {
	var v scannedVersion
	var kept texts
	if err := v.scan(c, &kept); err != nil {
		return store.Record{}, err
	}
	r := v.record
	r.UID = s.uid(v.rid, &kept)
	if v.newest {
		r.Revision = revision(v.rid, r.Version, v.changes, &kept)
	}
	var err error
	r.Body, err = unpackBody(v.body)
	return r, decodeError(r.Key, r.Version, err)
}
