// Package postgres is the storage engine that keeps records in Postgres: the newest version of each
// record in one table, superseded versions in another, and searchable values in narrow index
// tables. It caches no records. Package schema creates the tables. The README explains their
// columns and how a search is planned.
package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/batcher"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/apiserver/store/postgres/indexrow"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
	"github.com/paddock-health/paddock/apiserver/store/postgres/sqlplan"
)

// Options are the settings of a site's Store.
type Options struct {
	// Extractor finds the searchable values and labels of a record. If it is nil, records have none.
	// After an upgrade that changes the results, Store.Renew updates the index rows of existing
	// records.
	Extractor store.Extractor
	// QueryTimeout is the maximum duration of a call of a method of store.Store. At the limit the call
	// fails. Load, Restore and a batch of Reindex may take ten times as long. Most statements of
	// other methods and of background tasks are also limited by the statement_timeout of 5 s. Default:
	// 7 s.
	QueryTimeout time.Duration
	// Replicas are the read replicas of the database, for searches with Query.MaxLag. If it is nil, the
	// primary answers all searches.
	Replicas *Replicas
	// Maintenance is the Maintenance of the pool, which all stores of the pool share. If it is nil,
	// the store has a Maintenance of its own, which is enough if no other store uses the pool.
	Maintenance *Maintenance
	// Now is the clock for the times of writes, for tests. If it is nil, the clock of the database
	// is used. With another clock, clients that poll may miss versions.
	Now func() time.Time
}

// Store stores the records of one site in Postgres. It implements store.Store, store.Archive and
// store.ChangeLog. It is safe for concurrent use.
type Store struct {
	pool       *pgxpool.Pool
	site       int32
	hash       indexrow.Hasher
	salt       uint64 // the part of UIDs that is the same for all records of the site
	rids       indexrow.RidSource
	now        func() time.Time
	timeout    time.Duration
	renewPause time.Duration
	loader     *recordLoader
	queries    *queryBatcher
	watermarks *batcher.Batcher[*pendingWatermark]
	writes     *batcher.Batcher[*pendingWrite]
	// minBatch is the least number of writes that are sent as one shared statement: 2, or 1 in tests.
	minBatch     int
	index        indexrow.Indexer
	planIndex    sqlplan.Index
	maxPageBytes int
	share        share
	// replicas is nil if the database has no read replicas. replicaShare limits the connections to them.
	replicas     *Replicas
	replicaShare share
	maintenance  *Maintenance
	// earlierTables is the result of earlier.
	earlierTables atomic.Pointer[indexrow.Earlier]
	statistics    statistics
	longLists     longListCache
	quick         *quickStatements
	stats         statsCache
	// written is the number of records that this process has written, including those that a write
	// left unchanged.
	written atomic.Int64
	// newest is the time of the latest Write of this process, in milliseconds since 1970. Load and Restore
	// do not set it.
	newest atomic.Int64
	late   lateHits
	// retention is nil until SetRetention is called.
	retention atomic.Pointer[store.Retention]

	mu sync.Mutex
	// referencePaths are the rows of ix_path that this process knows to exist.
	referencePaths map[indexrow.ReferencePath]struct{}
}

var _ store.Store = (*Store)(nil)

// Connect opens the connection pool that the sites of a database share. The caller must close the
// pool. Errors: those of Config, store.ErrUnavailable.
func Connect(ctx context.Context, uri string) (*pgxpool.Pool, error) {
	config, err := Config(uri)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to Postgres, database %s at %s: %w", config.ConnConfig.Database, config.ConnConfig.Host, store.ErrUnavailable)
	}
	return pool, nil
}

// Config parses a connection string. It adds the limits of the pool and of messages, and the
// session settings on which the statements of the engine rely. Session settings, the maximum pool
// size and the connect timeout in the connection string take precedence. It returns an error if the
// connection string is invalid. The error does not contain the connection string, which may have a
// password.
func Config(uri string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(uri)
	if err != nil {
		return nil, errors.New("connect to Postgres: the connection string or one of its parameters is invalid; write it as postgres://user:password@host:5432/database") // err may quote the password
	}
	dsn.Bound(config.ConnConfig, maxMessageBytes)
	limit(config, strings.Contains(uri, "pool_max_conns"))
	config.AfterConnect = registerArrays
	parameters := config.ConnConfig.RuntimeParams
	for name, value := range session {
		if _, set := parameters[name]; !set {
			parameters[name] = value
		}
	}
	return config, nil
}

// The settings of a pool, per process and database. connectTimeout and pingTimeout are shorter than
// Options.QueryTimeout, so that a call can try another connection.
const (
	// maxConnections is the default maximum size of the pool. Three processes leave half of
	// Postgres's default of 100 connections.
	maxConnections = 16
	connectTimeout = 3 * time.Second
	// maxMessageBytes is the maximum size of a protocol message from the server, in bytes. At the
	// limit the connection fails. The largest message is a row, which has one body at most.
	maxMessageBytes = maxBodyBytes + 1<<20
	// pingTimeout is the maximum duration of the ping that checks a connection before use if it was
	// idle for a second or more. If the ping fails, another connection is used.
	pingTimeout = 2 * time.Second
	// maxIdleTime is how long a connection may be idle before it is closed.
	maxIdleTime = 5 * time.Minute
	checkPeriod = 15 * time.Second
	// lifeJitter is the maximum random time that is added to the lifetime of a connection, so that
	// connections are not all replaced at the same time.
	lifeJitter = 5 * time.Minute
)

// limit applies the settings above to a pool. sized reports whether the connection string has a
// maximum pool size, which then remains.
func limit(config *pgxpool.Config, sized bool) {
	if !sized {
		config.MaxConns = maxConnections
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.PingTimeout, config.MaxConnIdleTime = pingTimeout, maxIdleTime
	config.HealthCheckPeriod, config.MaxConnLifetimeJitter = checkPeriod, lifeJitter
}

// session are the Postgres settings of every connection. Each statement is prepared and planned
// once per connection. Statements are written so that one plan is good for all values of its
// arguments: it scans indexes in order and looks up each row.
var session = map[string]string{
	"application_name":                    schema.ApplicationName,
	"plan_cache_mode":                     "force_generic_plan",
	"enable_seqscan":                      "off",
	"enable_bitmapscan":                   "off",
	"enable_hashjoin":                     "off",
	"enable_hashagg":                      "off", // distinct results are needed in order, or are sorted as fast
	"enable_mergejoin":                    "off",
	"enable_material":                     "off",
	"enable_sort":                         "off",
	"jit":                                 "off",
	"max_parallel_workers_per_gather":     "0",
	"work_mem":                            "32MB",
	"timezone":                            "UTC",
	"statement_timeout":                   "5s",
	"idle_in_transaction_session_timeout": "30s",
	// The snapshot of each statement must include what was committed before earlier statements of the
	// transaction got their locks.
	"default_transaction_isolation": "read committed",
}

// Open returns the store of the site with a site key. If the database does not have the site, Open
// adds it. The schema must be migrated. Errors: store.ErrUnavailable, also if the schema is too old
// or too new.
func Open(ctx context.Context, pool *pgxpool.Pool, key string, options Options) (*Store, error) {
	s := &Store{
		pool: pool, now: options.Now, timeout: options.QueryTimeout, renewPause: renewPause, referencePaths: map[indexrow.ReferencePath]struct{}{},
		maxPageBytes: maxPageBytes, share: newShare(pool.Config().MaxConns),
	}
	if s.replicas = options.Replicas; s.replicas != nil {
		s.replicaShare = newShare(s.replicas.standbys.Config().MaxConns)
	}
	s.rids.Seed()
	if s.timeout == 0 {
		s.timeout = 7 * time.Second
	}
	s.loader, s.watermarks = newRecordLoader(s.findAll, s.timeout), s.newWatermarks()
	s.writes, s.minBatch = s.newWriteBatcher(), 2
	if s.maintenance = options.Maintenance; s.maintenance == nil {
		s.maintenance = NewMaintenance(pool)
	}
	if options.Extractor == nil {
		options.Extractor = store.NoExtractor
	}
	if err := s.register(ctx, key); err != nil {
		return nil, err
	}
	s.queries = newQueryBatcher(pool, s.site, s.timeout)
	s.quick = newQuickStatements()
	s.refreshStatistics(ctx)
	s.index = indexrow.Indexer{Hash: s.hash, Extractor: options.Extractor, Earlier: s.earlier}
	s.planIndex = sqlplan.Index{
		Number: s.site, Hash: s.hash, Extractor: options.Extractor, Limits: sqlplan.DefaultLimits, Columns: pageColumns, Database: planDatabase{s, s.pool, s.earlier},
	}
	return s, nil
}

// register checks the schema, and reads the number and the hash key of the site. It creates both for
// a new site. It also finds out which tables of earlier releases the database has.
func (s *Store) register(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.checkSchema(ctx, key); err != nil {
		return err
	}
	const find = `SELECT site, hash_key FROM sites WHERE key = $1`
	var hashKey []byte
	err := s.pool.QueryRow(ctx, find, key).Scan(&s.site, &hashKey)
	if errors.Is(err, pgx.ErrNoRows) {
		fresh := make([]byte, indexrow.HashKeySize)
		_, _ = rand.Read(fresh) // never fails
		if _, err = s.pool.Exec(ctx, `INSERT INTO sites (key, hash_key) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING`, key, fresh); err == nil {
			err = s.pool.QueryRow(ctx, find, key).Scan(&s.site, &hashKey)
		}
	}
	if err != nil {
		return storeError("open site "+key, err)
	}
	if err := s.findEarlier(ctx); err != nil {
		return storeError("open site "+key, err)
	}
	s.hash, err = indexrow.NewHasher(hashKey)
	s.salt = uint64(s.hash.Of('U'))
	return err
}

// checkSchema checks that the schema is new enough for this server, and this server new enough for
// the schema.
func (s *Store) checkSchema(ctx context.Context, key string) error {
	const find = `SELECT version, (SELECT oldest_server FROM requirement) FROM ` + schema.VersionTable
	var version int32
	var oldest int
	err := s.pool.QueryRow(ctx, find).Scan(&version, &oldest)
	switch {
	case hasCode(err, undefinedTable) || err == nil && version < schema.Newest:
		return fmt.Errorf("open site %s: the schema has version %d, but this server needs version %d; migrate the schema: %w", key, version, schema.Newest, store.ErrUnavailable)
	case err != nil:
		return storeError("open site "+key, err)
	case oldest > schema.Server:
		return fmt.Errorf("open site %s: the database requires server level %d, but this server has level %d; upgrade the server: %w", key, oldest, schema.Server, store.ErrUnavailable)
	default:
		return nil
	}
}

// Atomic implements store.Store.
func (s *Store) Atomic() bool { return true }
