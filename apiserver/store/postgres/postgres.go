// Package postgres keeps records in Postgres: the newest version of each in one table,
// superseded ones in another, and what searches ask for in narrow index tables. Reads,
// searches and several records in one write go to the database; nothing is kept here but
// what never changes. The tables are in the package schema.
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
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
	"github.com/paddock-health/paddock/apiserver/store/postgres/schema"
)

// Options tune a site. The zero value of a field means its default.
type Options struct {
	// Extract finds the searchable values of records. Default: they have none.
	Extract store.Extract
	// References finds the references among what Extract finds, for includes. Default:
	// Extract does.
	References store.Extract
	// Facet tells the token parameters that have few codes, such as gender: they choose
	// from what other conditions find rather than find themselves. Default: none has. When
	// it or Extract changes, Reindex brings older records up to date.
	Facet func(param string) bool
	// Fold is how Extract folds texts that it folds: it leads from an exact text to where it
	// is indexed. Default: not known; exact texts are looked for one record after the other.
	Fold func(string) string
	// QueryTimeout bounds a call, beside the sessions' statement_timeout. Default: seven seconds.
	QueryTimeout time.Duration
	// Now is the clock that records are written by. Default: the database's, which polling
	// counts on.
	Now func() time.Time
}

// Site is the store of one site.
type Site struct {
	pool    *pgxpool.Pool
	site    int32
	hash    hasher
	salt    uint64 // of uids
	rids    ridSource
	now     func() time.Time
	timeout time.Duration
	// renewPause is between two passes of Renew.
	renewPause time.Duration
	lookups    *lookups
	questions  *questions
	index      indexer
	bounds     bounds
	mostOnPage int
	share      share
	sizes      sizes
	longLists  longLists
	stats      statsCache
	// written counts the records that this process wrote.
	written atomic.Int64
	// newest is the latest time of a write of this process, in milliseconds.
	newest atomic.Int64

	mu sync.Mutex
	// paths are the rows of ix_path that are known to be there.
	paths map[path]struct{}
}

var _ store.Store = (*Site)(nil)

// Connect makes the pool that the sites of a database share.
func Connect(ctx context.Context, uri string) (*pgxpool.Pool, error) {
	config, err := Config(uri)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to postgres: %w", store.ErrUnavailable)
	}
	return pool, nil
}

// Config is how to connect. Its statements count on the settings of the sessions.
func Config(uri string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(uri)
	if err != nil {
		return nil, errors.New("connect to postgres: the connection string cannot be read") // it holds a password
	}
	dsn.Bound(config.ConnConfig, largestMessage)
	limit(config, strings.Contains(uri, "pool_max_conns"))
	parameters := config.ConnConfig.RuntimeParams
	for name, value := range session {
		if _, set := parameters[name]; !set {
			parameters[name] = value
		}
	}
	return config, nil
}

// The limits of a pool. A call has Options.QueryTimeout in all; these leave some of it to
// try another connection.
const (
	// mostConnections is for each process: three of them leave half of a server's usual 100.
	mostConnections = 16
	connectTimeout  = 3 * time.Second
	// largestMessage is more than a row has, which holds one body.
	largestMessage = maxBody + 1<<20
	// pingTimeout is for a connection that was idle for a second or more.
	pingTimeout = 2 * time.Second
	// maxIdle gives connections back that a peak needed.
	maxIdle     = 5 * time.Minute
	checkPeriod = 15 * time.Second
	// lifeJitter keeps connections from being renewed all at once.
	lifeJitter = 5 * time.Minute
)

// limit sets what a pool waits for; sized tells that the connection string says how many
// connections there may be.
func limit(config *pgxpool.Config, sized bool) {
	if !sized {
		config.MaxConns = mostConnections
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.PingTimeout, config.MaxConnIdleTime = pingTimeout, maxIdle
	config.HealthCheckPeriod, config.MaxConnLifetimeJitter = checkPeriod, lifeJitter
}

// session are the settings of a connection. Statements are prepared once and planned
// once: they are written so that one plan is right for all values, which walks indexes
// in order and looks each row up.
var session = map[string]string{
	"application_name":                    "paddock",
	"plan_cache_mode":                     "force_generic_plan",
	"enable_seqscan":                      "off",
	"enable_bitmapscan":                   "off",
	"enable_hashjoin":                     "off",
	"enable_hashagg":                      "off", // what is made distinct is wanted in order, or sorts as fast
	"enable_mergejoin":                    "off",
	"enable_material":                     "off",
	"enable_sort":                         "off",
	"jit":                                 "off",
	"max_parallel_workers_per_gather":     "0",
	"work_mem":                            "32MB",
	"timezone":                            "UTC",
	"statement_timeout":                   "5s",
	"idle_in_transaction_session_timeout": "30s",
	// What a statement sees is what was there when it began, after the locks before it.
	"default_transaction_isolation": "read committed",
}

// Open returns the store of the site whose data has the key, which is made known to the
// database if it is new there. The schema must be in place.
func Open(ctx context.Context, pool *pgxpool.Pool, key string, options Options) (*Site, error) {
	s := &Site{
		pool: pool, now: options.Now, timeout: options.QueryTimeout, renewPause: renewPause, paths: map[path]struct{}{}, bounds: defaultBounds,
		mostOnPage: mostOnPage, share: newShare(pool.Config().MaxConns),
	}
	s.rids.seed()
	if s.timeout == 0 {
		s.timeout = 7 * time.Second
	}
	s.lookups, s.questions = newLookups(s.findAll, s.timeout), newQuestions(pool, s.timeout)
	if options.Extract == nil {
		options.Extract = func(string, []byte) []store.Entry { return nil }
	}
	if options.References == nil {
		options.References = options.Extract
	}
	if options.Facet == nil {
		options.Facet = func(string) bool { return false }
	}
	if err := s.register(ctx, key); err != nil {
		return nil, err
	}
	s.learnSizes(ctx)
	s.index = indexer{hash: s.hash, extract: options.Extract, references: options.References, facet: options.Facet, fold: options.Fold}
	return s, nil
}

// register looks the site up by its key.
func (s *Site) register(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	const find = `SELECT site, hash_key FROM sites WHERE key = $1`
	var hashKey []byte
	err := s.pool.QueryRow(ctx, find, key).Scan(&s.site, &hashKey)
	if errors.Is(err, pgx.ErrNoRows) {
		fresh := make([]byte, hashKeySize)
		_, _ = rand.Read(fresh) // never fails
		if _, err = s.pool.Exec(ctx, `INSERT INTO sites (key, hash_key) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING`, key, fresh); err == nil {
			err = s.pool.QueryRow(ctx, find, key).Scan(&s.site, &hashKey)
		}
	}
	if err != nil {
		return storeError("open site", err)
	}
	s.hash, err = newHasher(hashKey)
	s.salt = uint64(s.hash.of('U'))
	return err
}

// checkSchema refuses a database that was not migrated as far as this build needs, or
// further than it may use.
func (s *Site) checkSchema(ctx context.Context) error {
	const find = `SELECT version, (SELECT oldest_server FROM requirement) FROM ` + schema.VersionTable
	var version int32
	var oldest int
	err := s.pool.QueryRow(ctx, find).Scan(&version, &oldest)
	switch {
	case hasCode(err, undefinedTable) || err == nil && version < schema.Newest:
		return fmt.Errorf("open site: the schema has version %d, and this server needs %d: it is to be migrated: %w", version, schema.Newest, store.ErrUnavailable)
	case err != nil:
		return storeError("open site", err)
	case oldest > schema.Server:
		return fmt.Errorf("open site: the database asks for server level %d and this one has %d: upgrade it: %w", oldest, schema.Server, store.ErrUnavailable)
	default:
		return nil
	}
}

// Atomic implements store.Store.
func (s *Site) Atomic() bool { return true }
