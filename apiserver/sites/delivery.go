package sites

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
	"github.com/paddock-health/paddock/apiserver/store/postgres/queue"
)

// Sender attempts to deliver the events of a Site.
type Sender interface {
	delivery.Attempter
	// After returns the state of a webhook after an attempt, given its state before the attempt.
	After(state delivery.State, attempt delivery.Attempt) delivery.State
	// Ordered reports whether a webhook gets the events of a subject one at a time, in order.
	Ordered(webhook string) bool
}

// Delivery configures a process that delivers events.
type Delivery struct {
	// Sender returns the Sender of the Site in a namespace. log is the log of the Site's deliveries.
	Sender func(namespace, siteID string, log delivery.Log) Sender
	// Objects accesses the deliveries of etcd-backed Sites.
	Objects *objects.Client
}

// deliveriesOf returns the log of a store's deliveries, and the tail, which follows the log. Both
// are nil while the storage is not ready.
func deliveriesOf(opened store.Store) (delivery.Log, delivery.Tail) {
	switch opened := opened.(type) {
	case *database:
		return databaseDeliveries{opened}, databaseDeliveries{opened}
	case *cluster.Store:
		return opened.Deliveries(), opened.Tail()
	default:
		return nil, nil
	}
}

// Target returns the target for the events of the etcd-backed Site in a namespace that has the site
// key. It reports false if there is no such Site, or while the storage of the Site is not ready.
func (s *Sites) Target(namespace, key string) (deliveries.Target, bool) {
	site, served := s.InNamespace(namespace)
	if !served || site.key != key || site.sender == nil {
		return nil, false
	}
	return site.sender, true
}

// Health returns the health of each webhook of the Site in a namespace, by the id of the webhook, with
// the last failures. It returns nil if there is no such Site, or while the storage of the Site is not ready.
func (s *Sites) Health(ctx context.Context, namespace string) (map[string]delivery.Health, error) {
	site, served := s.InNamespace(namespace)
	if !served || site.Deliveries == nil {
		return nil, nil
	}
	health, err := site.Deliveries.Health(ctx)
	if err != nil {
		return nil, err
	}
	return health, delivery.AddLastFailures(ctx, site.Deliveries, health)
}

// describeDelivery sets the fields for delivering the events of a Site with etcd-backed storage.
func (s *Sites) describeDelivery(site *ServedSite, namespace string) {
	site.Deliveries = deliveries.NewLog(s.options.Delivery.Objects, namespace, site.key, time.Now)
	site.sender = s.options.Delivery.Sender(namespace, site.ID, site.Deliveries)
}

// CloseQueues ends the delivery of the events of Sites in Postgres. It waits up to 20 s for attempts
// in flight, and then cancels the attempts that are left.
func (s *Sites) CloseQueues() { s.databases.closeQueues() }

const (
	// openDelay is the pause before another attempt to open the store of a Site with events to
	// deliver.
	openDelay = 5 * time.Second
	// queueDelay is the pause before another queue runs after one ended with an error.
	queueDelay = 5 * time.Second
)

// sharedQueue delivers the events of all Sites of one pool.
type sharedQueue struct {
	pool   *pgxpool.Pool
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	senders map[*postgres.Store]Sender
	// running is nil before the first queue, and between the end of a queue and the next one.
	running *queue.Queue
}

func runQueue(pool *pgxpool.Pool) *sharedQueue {
	ctx, cancel := context.WithCancel(context.Background())
	q := &sharedQueue{pool: pool, cancel: cancel, ended: make(chan struct{}), senders: map[*postgres.Store]Sender{}}
	go q.run(ctx)
	return q
}

// run runs queues until ctx ends. A queue ends with the first error that it cannot handle, and
// another replaces it after queueDelay.
func (q *sharedQueue) run(ctx context.Context) {
	defer close(q.ended)
	for ctx.Err() == nil {
		if err := q.runOne(ctx); err != nil && ctx.Err() == nil {
			server := q.pool.Config().ConnConfig
			slog.WarnContext(ctx, "the delivery queue of a database ended; the server will restart it", "host", server.Host, "database", server.Database, "error", err)
			sleep(ctx, queueDelay)
		}
	}
}

func (q *sharedQueue) runOne(ctx context.Context) error {
	running, err := queue.New(q.pool, queue.Options{Breaker: breaker{}, Log: slog.Default()})
	if err != nil {
		return err
	}
	q.mu.Lock()
	q.running = running
	for site, sender := range q.senders {
		running.Add(site, sender)
	}
	q.mu.Unlock()
	err = running.Run(ctx)
	q.mu.Lock()
	q.running = nil
	q.mu.Unlock()
	return err
}

// breaker implements queue.Breaker with delivery.After, for all webhooks of a database.
type breaker struct{}

// After implements queue.Breaker.
func (breaker) After(state delivery.State, attempt delivery.Attempt) delivery.State {
	return delivery.After(state, attempt)
}

func (q *sharedQueue) add(site *postgres.Store, sender Sender) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.senders[site] = sender
	if q.running != nil {
		q.running.Add(site, sender)
	}
}

func (q *sharedQueue) remove(site *postgres.Store) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.senders, site)
	if q.running != nil {
		q.running.Remove(site)
	}
}

// deliver delivers the events of a Site until ctx ends. name is the namespace and name of the Site, for
// the log.
func (d *database) deliver(ctx context.Context, name string, sender Sender) {
	for ctx.Err() == nil {
		site, err := d.opened(ctx)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
				slog.WarnContext(ctx, "cannot deliver the events of a site; the server will retry", "site", name, "siteKey", d.key, "error", err)
			}
			sleep(ctx, openDelay)
			continue
		}
		d.queue.add(site, sender)
		<-ctx.Done()
		d.queue.remove(site)
	}
}

// sleep pauses for a duration or until ctx ends.
func sleep(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// databaseDeliveries is the log and the tail of the deliveries of a Site in Postgres.
type databaseDeliveries struct{ *database }

var (
	_ delivery.Log  = databaseDeliveries{}
	_ delivery.Tail = databaseDeliveries{}
)

// Deliveries implements delivery.Log.
func (d databaseDeliveries) Deliveries(ctx context.Context, query delivery.Query) ([]delivery.Delivery, int64, error) {
	site, err := d.opened(ctx)
	if err != nil {
		return nil, 0, err
	}
	return site.Deliveries().Deliveries(ctx, query)
}

// Delivery implements delivery.Log.
func (d databaseDeliveries) Delivery(ctx context.Context, webhook, id string) (delivery.Delivery, error) {
	return with(ctx, d.database, func(site *postgres.Store) (delivery.Delivery, error) {
		return site.Deliveries().Delivery(ctx, webhook, id)
	})
}

// Redeliver implements delivery.Log.
func (d databaseDeliveries) Redeliver(ctx context.Context, webhook, id string) (delivery.Delivery, error) {
	return with(ctx, d.database, func(site *postgres.Store) (delivery.Delivery, error) {
		return site.Deliveries().Redeliver(ctx, webhook, id)
	})
}

// Replay implements delivery.Log.
func (d databaseDeliveries) Replay(ctx context.Context, query delivery.Query) (delivery.Replayed, error) {
	return with(ctx, d.database, func(site *postgres.Store) (delivery.Replayed, error) { return site.Deliveries().Replay(ctx, query) })
}

// Recent implements delivery.Log.
func (d databaseDeliveries) Recent(ctx context.Context, from time.Time) (delivery.Recent, error) {
	return with(ctx, d.database, func(site *postgres.Store) (delivery.Recent, error) { return site.Deliveries().Recent(ctx, from) })
}

// Health implements delivery.Log.
func (d databaseDeliveries) Health(ctx context.Context) (map[string]delivery.Health, error) {
	return with(ctx, d.database, func(site *postgres.Store) (map[string]delivery.Health, error) { return site.Deliveries().Health(ctx) })
}

// After implements delivery.Tail.
func (d databaseDeliveries) After(ctx context.Context, webhook string, after delivery.Position, count int) ([]delivery.Delivery, delivery.Position, error) {
	site, err := d.opened(ctx)
	if err != nil {
		return nil, after, err
	}
	return site.Tail().After(ctx, webhook, after, count)
}
