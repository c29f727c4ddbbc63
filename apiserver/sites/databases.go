package sites

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

// databases are those that sites are kept in. Sites of one connection share its pool.
type databases struct {
	dial       dsn.Dial
	tracer     pgx.QueryTracer
	extraction Extraction
	// reindexed counts the records looked at by reindexing.
	reindexed atomic.Int64

	mu    sync.Mutex
	pools map[dsn.Connection]*sharedPool
}

type sharedPool struct {
	*pgxpool.Pool
	// users is how many stores are open.
	users int
}

func newDatabases(options Options) *databases {
	return &databases{dial: options.Dial, tracer: options.Tracer, extraction: options.Extraction, pools: map[dsn.Connection]*sharedPool{}}
}

// open makes the store of a site, which is connected when it is first asked for something.
// It lives until it is closed, or ctx ends.
func (d *databases) open(ctx context.Context, key string, connection dsn.Connection) (*database, error) {
	pool, err := d.acquire(ctx, connection)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	opened := &database{key: key, connection: connection, pool: pool, extraction: d.extraction}
	opened.close = sync.OnceFunc(func() {
		cancel()
		d.release(connection)
	})
	go opened.keepIndexed(ctx, func(records int64) { d.reindexed.Add(records) })
	return opened, nil
}

func (d *databases) acquire(ctx context.Context, connection dsn.Connection) (*pgxpool.Pool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if shared, there := d.pools[connection]; there {
		shared.users++
		return shared.Pool, nil
	}
	config, err := postgres.Config(connection.URI)
	if err != nil {
		return nil, err
	}
	if err := connection.Apply(config.ConnConfig, d.dial); err != nil {
		return nil, err
	}
	config.ConnConfig.Tracer = d.tracer
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, err
	}
	d.pools[connection] = &sharedPool{Pool: pool, users: 1}
	return pool, nil
}

// closeDelay is longer than a request takes that began with a store before it was closed.
const closeDelay = 90 * time.Second

// release closes a pool that no store uses any more, once the requests that do are over.
func (d *databases) release(connection dsn.Connection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	shared := d.pools[connection]
	if shared.users--; shared.users == 0 {
		delete(d.pools, connection)
		time.AfterFunc(closeDelay, shared.Close)
	}
}
