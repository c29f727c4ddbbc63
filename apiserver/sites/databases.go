package sites

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/dsn"
)

// databases has the connection pools of Sites. Sites with the same connection share a pool.
type databases struct {
	dial      dsn.Dial
	tracer    pgx.QueryTracer
	extractor store.Extractor
	// delivers reports whether this process delivers events.
	delivers bool
	// reindexed counts the records that reindexing has checked.
	reindexed atomic.Int64
	// retainedTombstones and retainedVersions count what retention has removed.
	retainedTombstones, retainedVersions atomic.Int64

	mu    sync.Mutex
	pools map[dsn.Connection]*sharedPool
}

type sharedPool struct {
	*pgxpool.Pool
	// users is how many open stores use the pool.
	users int
	// replicas searches on read replicas, over the pool standbys. Both are nil if the connection names no
	// read replicas, or if this process delivers events.
	replicas    *postgres.Replicas
	standbys    *pgxpool.Pool
	maintenance *postgres.Maintenance
	// queue is nil unless this process delivers events.
	queue *sharedQueue
}

func newDatabases(options Options) *databases {
	return &databases{
		dial: options.Dial, tracer: options.Tracer, extractor: options.Extractor, delivers: options.Delivery != nil,
		pools: map[dsn.Connection]*sharedPool{},
	}
}

// open returns the store of a Site. The store connects at the first call. open runs work in the
// background, with a context that ends when the store is closed or ctx ends. The caller must close the
// store.
func (d *databases) open(ctx context.Context, key string, connection dsn.Connection, work func(context.Context, *database)) (*database, error) {
	shared, err := d.acquire(ctx, connection)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	opened := &database{key: key, connection: connection, pool: shared.Pool, replicas: shared.replicas, maintenance: shared.maintenance, queue: shared.queue, extractor: d.extractor}
	opened.close = sync.OnceFunc(func() {
		cancel()
		d.release(connection)
	})
	go work(ctx, opened)
	return opened, nil
}

// openLocked connects to a database and returns the store of a Site in it. The store has a single
// session, which holds the advisory lock with the name lock for as long as the session lasts. The
// caller must close the store. Errors: postgres.ErrLocked.
func (d *databases) openLocked(ctx context.Context, key string, connection dsn.Connection, lock string) (*database, error) {
	config, err := d.config(connection)
	if err != nil {
		return nil, err
	}
	postgres.ConfigSession(config, lock)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return &database{key: key, connection: connection, pool: pool, extractor: d.extractor, close: pool.Close}, nil
}

func (d *databases) acquire(ctx context.Context, connection dsn.Connection) (*sharedPool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if shared, there := d.pools[connection]; there {
		shared.users++
		return shared, nil
	}
	shared, err := d.connect(context.WithoutCancel(ctx), connection)
	if err != nil {
		return nil, err
	}
	if d.delivers {
		shared.queue = runQueue(shared.Pool) // delivery.go
	}
	d.pools[connection] = shared
	return shared, nil
}

// connect returns the pool of a connection with one user, and the pool of its read replicas unless
// this process delivers events.
func (d *databases) connect(ctx context.Context, connection dsn.Connection) (*sharedPool, error) {
	config, err := d.config(connection)
	if err != nil {
		return nil, err
	}
	shared := &sharedPool{users: 1}
	if connection.ReplicaURI != "" && !d.delivers {
		replicas, err := d.config(connection.Replica())
		if err != nil {
			return nil, err
		}
		postgres.ConfigReplicas(config, replicas)
		if shared.standbys, err = pgxpool.NewWithConfig(ctx, replicas); err != nil {
			return nil, err
		}
	}
	if shared.Pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	shared.maintenance = postgres.NewMaintenance(shared.Pool)
	if shared.standbys != nil {
		shared.replicas = postgres.NewReplicas(shared.Pool, shared.standbys)
	}
	return shared, nil
}

func (d *databases) config(connection dsn.Connection) (*pgxpool.Config, error) {
	config, err := postgres.Config(connection.URI)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Tracer = d.tracer
	return config, connection.Apply(config.ConnConfig, d.dial)
}

// closeDelay is how long a pool stays open after its last store was closed. It exceeds the time limit
// of the requests that still use the pool.
const closeDelay = 90 * time.Second

// release ends the use of a pool by one store. After the last one, idle connections are closed at
// once, so that moves of Sites do not use up the connections of a server. The pool itself is closed
// after closeDelay.
func (d *databases) release(connection dsn.Connection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	shared := d.pools[connection]
	if shared.users--; shared.users == 0 {
		delete(d.pools, connection)
		if shared.queue != nil {
			shared.queue.cancel()
		}
		for _, pool := range []*pgxpool.Pool{shared.Pool, shared.standbys} {
			if pool != nil {
				pool.Reset()
				time.AfterFunc(closeDelay, pool.Close)
			}
		}
	}
}

// closeQueues ends all queues. It returns when their attempts in flight have ended or were canceled.
func (d *databases) closeQueues() {
	d.mu.Lock()
	var all []*sharedQueue
	for _, shared := range d.pools {
		if shared.queue != nil {
			all = append(all, shared.queue)
		}
	}
	d.mu.Unlock()
	for _, q := range all {
		q.cancel()
	}
	for _, q := range all {
		<-q.ended
	}
}
