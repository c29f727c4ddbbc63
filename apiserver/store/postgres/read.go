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
const stateColumns = `r.typ, r.id, r.spelling, r.rid, r.self, r.ver, r.upd, r.ixsum, r.method, r.deleted, r.claims, r.body`

// scanState reads a row; more are columns behind those of the state.
func scanState(row pgx.Row, more ...any) (*state, error) {
	var at state
	var typeName string
	var spelling *string
	var updated int64
	var method int16
	var claims, body []byte
	targets := append([]any{
		&typeName, &at.id, &spelling, &at.rid, &at.self, &at.version, &updated, &at.sum, &method, &at.deleted, &claims, &body,
	}, more...)
	if err := row.Scan(targets...); err != nil {
		return nil, err
	}
	at.key = store.Key{Type: typeName, ID: at.id}
	if spelling != nil {
		at.key.ID = *spelling
	}
	at.updated, at.method = time.UnixMilli(updated).UTC(), methodOf(method)
	var err error
	if at.claims, err = unpackClaims(claims); err != nil {
		return nil, err
	}
	at.body, err = unpackBody(body)
	return &at, err
}

// findRecord goes by the hash of type and id, which only one index has: the right one is
// used also by a plan that was made when the table was empty.
const findRecord = `SELECT ` + stateColumns + ` FROM res r WHERE r.site = $1 AND r.self = $2`

// find reads the newest version of a record; nil when there is none.
func (s *Site) find(ctx context.Context, key store.Key) (*state, error) {
	if !storable(key.Type) || !storable(key.ID) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	at, err := scanState(s.pool.QueryRow(ctx, findRecord, s.site, s.hash.self(key.Type, key.ID)))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError("read record", err)
	}
	return at, at.is(key)
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
	found, err := s.scanVersion(s.pool.QueryRow(ctx, find, s.site, s.hash.self(key.Type, key.ID), version))
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Record{}, store.ErrNotFound
	}
	return found, storeError("read version", err)
}

// oneVersion is a version of the record r: the newest one is current until the end of time.
const oneVersion = `SELECT r.self, r.ver, r.rid, r.upd, 9223372036854775807 AS until, r.method, r.deleted, r.body WHERE r.ver = $3
	UNION ALL SELECT x.self, x.ver, x.rid, x.upd, x.until, x.method, x.deleted, x.body FROM hist x WHERE x.site = $1 AND x.self = $2 AND x.ver = $3`

// versionColumns are what scanVersion reads of a version, named v, and its record, named r.
const versionColumns = `r.typ, COALESCE(r.spelling, r.id), v.self, v.ver, v.rid, v.upd, v.until = 9223372036854775807, r.claims, v.method, v.deleted, v.body`

func (s *Site) scanVersion(row pgx.Row, more ...any) (store.Record, error) {
	var r store.Record
	var self, rid, updated int64
	var newest bool
	var method int16
	var claims, body []byte
	targets := append([]any{&r.Key.Type, &r.Key.ID, &self, &r.Version, &rid, &updated, &newest, &claims, &method, &r.Deleted, &body}, more...)
	if err := row.Scan(targets...); err != nil {
		return store.Record{}, err
	}
	r.UID, r.Created, r.Updated, r.Method = s.uid(rid), createdAt(rid), time.UnixMilli(updated).UTC(), methodOf(method)
	var err error
	if newest {
		r.Revision = revision(rid, r.Version)
		if r.Claims, err = unpackClaims(claims); err != nil {
			return store.Record{}, err
		}
	}
	r.Body, err = unpackBody(body)
	return r, err
}
