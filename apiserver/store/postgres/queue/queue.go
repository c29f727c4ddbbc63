// Package queue delivers the events of sites in Postgres. A relay moves events from the outbox to
// deliveries, and inserts River jobs for the deliveries. Workers of River make the attempts by a
// Sender, which the caller provides. The outcome of an attempt is stored in the transaction that ends
// its job.
//
// A River job exists only for a delivery that is due. The time of a retry is in the table
// "delivery", and the job is inserted when the retry is due. A job ends without an attempt if its
// delivery has another job by then, or was deleted.
package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-health/paddock/apiserver/delivery"
	"github.com/paddock-health/paddock/apiserver/store/postgres"
)

// Sender makes the attempts of the deliveries of a site.
type Sender interface {
	delivery.Attempter
	// Ordered reports whether a webhook gets the events of a subject one after the other.
	Ordered(webhook string) bool
}

// Breaker decides when attempts of a webhook pause, because its receiver fails.
type Breaker interface {
	// After returns the breaker state of a webhook after an attempt. state is the breaker state
	// before the attempt. After a success, the new state has LastSuccess and nothing else.
	After(state delivery.State, attempt delivery.Attempt) delivery.State
}

// Options are the settings of a Queue.
type Options struct {
	// Breaker decides when the attempts of a webhook pause. Required.
	Breaker Breaker
	// Log gets the warnings of the Queue. If it is nil, warnings are discarded.
	Log *slog.Logger
	// Workers is the maximum number of concurrent attempts per webhook and process. At the limit, jobs
	// wait. Default: 32.
	Workers int
	// Probes is the maximum number of concurrent attempts per process for webhooks with an open
	// breaker. At the limit, jobs wait. Default: 16.
	Probes int
	// Retention is the time for which a delivery is kept after its end. Then the delivery is deleted.
	// If the Retention of a site's store sets Deliveries, that time applies instead. Default: 7 days.
	Retention time.Duration
	// RescueAfter is the time after the start of an attempt at which the process of the attempt is
	// considered dead and the job is started again. An attempt is cancelled after 80 % of this time.
	// Default: 75 s.
	RescueAfter time.Duration
	// Now is the clock by which retries are due. Default: time.Now.
	Now func() time.Time
}

// Queue delivers the events of the sites of one database. Several processes may each run a Queue on
// the same database. It is safe for concurrent use.
type Queue struct {
	pool    *pgxpool.Pool
	options Options
	// river is the pool of River's connections.
	river   *pgxpool.Pool
	client  *river.Client[pgx.Tx]
	queues  *queues
	loader  *loader
	settler *settler
	// fault is called at points where tests inject errors.
	fault func(point string) error

	mu    sync.Mutex
	sites map[int32]*site
}

// site is a site whose events this process delivers.
type site struct {
	number int32
	store  *postgres.Store
	sender Sender
}

const (
	defaultWorkers     = 32
	defaultProbes      = 16
	defaultRetention   = 7 * 24 * time.Hour
	defaultRescueAfter = 75 * time.Second
	// jobTimeoutShare is the fraction of Options.RescueAfter after which an attempt is cancelled.
	jobTimeoutShare = 0.8
	// fetchCooldown is the minimum time between two fetches of jobs of one River queue. With a shorter
	// time, most fetches return a single job, and the queues of many webhooks compete for the CPU.
	fetchCooldown = 10 * time.Millisecond
	// fetchPoll is the time between two polls of a River queue. A job waits at most this long if its
	// notification is lost.
	fetchPoll = time.Second
	// completedRetention is the time for which River keeps ended jobs. The table "delivery" has their
	// outcome.
	completedRetention = time.Minute
	// errorDelay is the time after which a job that ended with an error is tried again.
	errorDelay = 2 * time.Second
)

// New returns a Queue on a pool that postgres.Config configured. It delivers nothing until Run is
// called. New opens another pool, for River, which Run closes.
func New(pool *pgxpool.Pool, options Options) (*Queue, error) {
	setDefault(&options.Workers, defaultWorkers)
	setDefault(&options.Probes, defaultProbes)
	setDefault(&options.Retention, defaultRetention)
	setDefault(&options.RescueAfter, defaultRescueAfter)
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	q := &Queue{pool: pool, options: options, sites: map[int32]*site{}, fault: func(string) error { return nil }}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &worker{queue: q}); err != nil {
		return nil, fmt.Errorf("register the worker of the delivery queue: %w", err)
	}
	var err error
	if q.river, err = pgxpool.NewWithConfig(context.Background(), riverConfig(pool)); err != nil {
		return nil, fmt.Errorf("connect the delivery queue: %w", err)
	}
	q.client, err = river.NewClient(riverpgxv5.New(q.river), &river.Config{
		Logger:  options.Log,
		Workers: workers,
		// Further queues are added when they have jobs.
		Queues:                      map[string]river.QueueConfig{probeQueue: {MaxWorkers: options.Probes, FetchPollInterval: probePoll}},
		FetchCooldown:               fetchCooldown,
		FetchPollInterval:           fetchPoll,
		JobTimeout:                  time.Duration(float64(options.RescueAfter) * jobTimeoutShare),
		RescueStuckJobsAfter:        options.RescueAfter,
		CompletedJobRetentionPeriod: completedRetention,
		// River retries a job only after a database error or the end of a process. MaxAttempts is as
		// large as River's column allows; heal handles jobs that reach it.
		MaxAttempts:       math.MaxInt16,
		RetryPolicy:       retryPolicy{},
		ReindexerSchedule: river.NeverSchedule(),
	})
	if err != nil {
		return nil, fmt.Errorf("create the delivery queue: %w", err)
	}
	q.queues = newQueues(q.client, options)
	q.loader, q.settler = newLoader(q), newSettler(q)
	return q, nil
}

// riverConnections is the maximum size of River's pool, per process and database. One connection
// listens for notifications, the other connections fetch jobs.
const riverConnections = 8

// riverConfig returns the settings of River's connections. It replaces the engine's planner settings,
// which forbid the sorts and bitmap scans that River's statements need.
func riverConfig(pool *pgxpool.Pool) *pgxpool.Config {
	config := pool.Config()
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, riverConnections
	parameters := config.ConnConfig.RuntimeParams
	for name := range parameters {
		if strings.HasPrefix(name, "enable_") {
			delete(parameters, name)
		}
	}
	parameters["enable_seqscan"] = "off" // the statistics of a table that fills and drains are always outdated
	// The generic plan of a fetch does not know its LIMIT, and joins it with all jobs: with a million
	// jobs, that takes 190 ms instead of 1 ms.
	parameters["enable_hashjoin"], parameters["enable_mergejoin"] = "off", "off"
	// River's own commits only record which process works on a job. If a crash of Postgres loses such
	// a commit, the job is fetched again, and its attempt may be repeated, as after a crash of a
	// process.
	parameters["synchronous_commit"] = "off"
	return config
}

func setDefault[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

// retryPolicy retries jobs that ended with an error after a constant delay.
type retryPolicy struct{}

// NextRetry implements river.ClientRetryPolicy.
func (retryPolicy) NextRetry(*jobRow) time.Time { return time.Now().Add(errorDelay) }

// Add starts the delivery of a site's events in this process.
func (q *Queue) Add(s *postgres.Store, sender Sender) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sites[s.Number()] = &site{number: s.Number(), store: s, sender: sender}
}

// Remove stops the delivery of a site's events in this process. It does not wait for attempts in
// progress.
func (q *Queue) Remove(s *postgres.Store) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.sites, s.Number())
}

func (q *Queue) site(number int32) *site {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sites[number]
}

// numbers returns the numbers of the sites of this process, in ascending order.
func (q *Queue) numbers() []int32 {
	q.mu.Lock()
	defer q.mu.Unlock()
	numbers := make([]int32, 0, len(q.sites))
	for number := range q.sites {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return numbers
}

// stopTimeout is the maximum time for which attempts may continue after the context of Run has
// ended. After that time they are cancelled.
const stopTimeout = 20 * time.Second

// Run delivers events until ctx ends. It then waits up to 20 s for attempts in progress, cancels
// attempts that take longer, and waits up to 20 s for their end. Run can be called only once.
func (q *Queue) Run(ctx context.Context) error {
	defer q.river.Close()
	// The settlers must outlive ctx, because jobs in progress still store their results after its end.
	settling, stopSettling := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSettling()
	var settlers sync.WaitGroup
	for _, results := range q.settler.results {
		settlers.Go(func() { q.settler.run(settling, results) })
	}
	defer settlers.Wait()
	defer stopSettling()
	if err := q.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start the delivery queue: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return q.pump(ctx) })
	group.Go(func() error { return q.queues.addWanted(ctx) })
	group.Go(func() error { return q.every(ctx, "keep queues", queuesPeriod, q.keepQueues) })
	group.Go(func() error { return q.every(ctx, "probe", probePeriod, q.probe) })
	group.Go(func() error { return q.every(ctx, "heal", healPeriod, q.heal) })
	group.Go(func() error { return q.every(ctx, "trim", trimPeriod, q.trim) })
	err := group.Wait()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if stop := q.client.Stop(stopping); stop != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		stop = q.client.StopAndCancel(stopping)
		if stop != nil {
			return fmt.Errorf("stop the delivery queue: %w", stop)
		}
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// every runs a task at once and then after each period until ctx ends. If a run takes longer than
// period, the next one begins at its end. every logs errors of the task with its name. Errors: ctx.Err().
func (q *Queue) every(ctx context.Context, name string, period time.Duration, task func(context.Context) error) error {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		if err := task(ctx); err != nil && ctx.Err() == nil {
			q.options.Log.WarnContext(ctx, "a task of the delivery queue failed; it will be retried", "task", name, "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// now returns the time of the clock in milliseconds since 1970.
func (q *Queue) now() int64 { return q.options.Now().UnixMilli() }

// name returns the name of the River queue of a webhook.
func name(site int32, webhook string) string {
	sum := sha256.Sum256([]byte(webhook))
	return fmt.Sprintf("s%d-%s", site, hex.EncodeToString(sum[:16]))
}

// tryLock tries to lock a task of a site until the transaction ends. It returns false if another
// process has the lock.
func tryLock(ctx context.Context, tx pgx.Tx, lock int, site int32) (ours bool, err error) {
	err = tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1, $2)`, lock, site).Scan(&ours)
	return ours, err
}
