package audit

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// soonDelay is how long entries of reads are collected before they are stored together.
	soonDelay = 500 * time.Millisecond
	// maxPending is the maximum number of entries of a Log that wait to be stored. At the limit
	// further entries are dropped and, unless Settings.Continue is set, their requests are refused.
	maxPending = 10_000
	// maxBatch is the maximum number of entries that are stored at once, and maxBatchRecords the
	// maximum number of their records. An entry with more records is stored alone. Postgres writes
	// an index row for each record, and must write all of them within appendTimeout.
	maxBatch, maxBatchRecords = 1_000, 5_000
	// appendTimeout is the time limit for storing a batch.
	appendTimeout = 5 * time.Second
	// retryDelay is the pause before a failed batch is stored again.
	retryDelay = 250 * time.Millisecond
	// trimInterval is how often entries beyond the retention are deleted.
	trimInterval = time.Hour
	// firstTrim is the maximum delay of a Log's first deletion. The delay is random, so that the Logs
	// of a process do not start at the same time.
	firstTrim = time.Minute
	// trimTimeout is the time limit of one deletion.
	trimTimeout = 5 * time.Minute
)

// Settings configure the log of a Site.
type Settings struct {
	// Retention is how long entries are kept. Older entries are deleted.
	Retention time.Duration
	// Continue serves requests that cannot be recorded. If Continue is false, such requests fail with
	// ErrUnavailable.
	Continue bool
	// Parameters adds the names of a request's parameters to its entries.
	Parameters bool
}

// Log stores the audit entries of one Site in batches. It is safe for concurrent use.
type Log struct {
	name     string
	settings atomic.Pointer[Settings]
	cancel   context.CancelFunc
	ended    chan struct{}
	// wake has an item while pending entries must be stored immediately.
	wake chan struct{}

	mu      sync.Mutex
	storage Storage
	// closed reports whether Close was called. Later entries are stored immediately.
	closed  bool
	pending []*Entry
	// added and stored count entries. The difference is the number of pending entries.
	added, stored int64
	waiting       []waiter
	failed        error
	dropped       int64
	anonymous     anonymousLimit
}

// waiter waits until the count of stored entries reaches until.
type waiter struct {
	until int64
	done  chan error
}

// NewLog returns the log of a Site. name identifies the Site in messages. The log runs until Close.
func NewLog(name string, storage Storage, settings Settings) *Log {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Log{storage: storage, name: name, cancel: cancel, ended: make(chan struct{}), wake: make(chan struct{}, 1)}
	l.Configure(settings)
	go l.run(ctx)
	go l.trimRegularly(ctx)
	return l
}

// Configure replaces the settings of the log.
func (l *Log) Configure(settings Settings) { l.settings.Store(&settings) }

// Storage returns the storage of the entries.
func (l *Log) Storage() Storage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.storage
}

// Move replaces the storage. Entries that are not stored yet are stored in the new storage.
func (l *Log) Move(storage Storage) {
	l.mu.Lock()
	l.storage = storage
	l.mu.Unlock()
	l.flush()
}

// storesWithWrites reports whether the storage is a WithWrites, and the last attempt to store entries
// succeeded.
func (l *Log) storesWithWrites() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, stores := l.storage.(WithWrites)
	return stores && l.failed == nil
}

func (l *Log) namesParameters() bool { return l.settings.Load().Parameters }

// Close stores the pending entries and ends the log. Pending entries are lost if an attempt to store
// them fails, or ctx ends first. Each entry that is added later is stored immediately.
func (l *Log) Close(ctx context.Context) {
	l.summarize()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.wait(ctx) // entries that cannot be stored now are lost with the process
	l.cancel()
	<-l.ended
}

// ready returns ErrUnavailable while the log fails, unless Continue is set.
func (l *Log) ready() error {
	if !l.settings.Load().Continue && l.Failing() {
		return ErrUnavailable
	}
	return nil
}

// Failing reports whether the last attempt to store entries failed.
func (l *Log) Failing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed != nil
}

// summarize adds the summaries of counted requests.
func (l *Log) summarize() {
	l.mu.Lock()
	defer l.mu.Unlock()
	summaries := l.anonymous.take()
	l.pending = append(l.pending, summaries...)
	l.added += int64(len(summaries))
}

// add adds entries. A request without an authenticated caller may only be counted (anonymousLimit). If
// durable is set, add waits until all entries that it added are stored. Errors: ErrUnavailable,
// unless Continue is set.
func (l *Log) add(ctx context.Context, entries []*Entry, durable bool) error {
	err := l.take(ctx, entries, durable)
	if l.settings.Load().Continue {
		return nil
	}
	return err
}

func (l *Log) take(ctx context.Context, entries []*Entry, durable bool) error {
	l.mu.Lock()
	if entries = l.anonymous.admit(entries); len(entries) == 0 {
		l.mu.Unlock()
		return nil
	}
	if l.closed {
		l.mu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, appendTimeout)
		defer cancel()
		if l.Storage().Append(ctx, entries) != nil {
			return ErrUnavailable
		}
		return nil
	}
	if len(l.pending)+len(entries) > maxPending {
		l.dropped += int64(len(entries))
		l.mu.Unlock()
		return ErrUnavailable
	}
	l.pending = append(l.pending, entries...)
	l.added += int64(len(entries))
	full, failing := len(l.pending) >= maxBatch, l.failed != nil
	l.mu.Unlock()
	switch {
	case failing:
		return ErrUnavailable // the entries are stored when the log recovers
	case durable:
		return l.wait(ctx)
	case full:
		l.flush()
	}
	return nil
}

// wait blocks until all entries added so far are stored, or storing fails.
func (l *Log) wait(ctx context.Context) error {
	l.mu.Lock()
	if l.stored == l.added {
		l.mu.Unlock()
		return nil
	}
	stored := make(chan error, 1)
	l.waiting = append(l.waiting, waiter{l.added, stored})
	l.mu.Unlock()
	l.flush()
	select {
	case err := <-stored:
		return err
	case <-ctx.Done():
		return ErrUnavailable
	}
}

// flush makes run store the pending entries immediately.
func (l *Log) flush() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run stores pending entries until ctx ends.
func (l *Log) run(ctx context.Context) {
	defer close(l.ended)
	soon, summary := time.NewTicker(soonDelay), time.NewTicker(summaryInterval)
	defer soon.Stop()
	defer summary.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-soon.C:
		case <-summary.C:
			l.summarize()
		}
		for l.store(ctx) {
		}
	}
}

// store stores a batch of pending entries, and reports whether more are to be stored immediately. After
// a failure it pauses for retryDelay.
func (l *Log) store(ctx context.Context) (more bool) {
	l.mu.Lock()
	n := batchSize(l.pending)
	batch, storage := l.pending[:n:n], l.storage
	l.mu.Unlock()
	if n == 0 {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, appendTimeout)
	err := storage.Append(bounded, batch)
	cancel()
	if err != nil && l.Storage() != storage {
		return true // Move was called in the meantime: store the batch there
	}
	more = l.complete(ctx, n, err)
	if err == nil {
		return more
	}
	pause := time.NewTimer(retryDelay)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-pause.C:
		return true
	}
}

// batchSize returns how many of the pending entries the next batch has.
func batchSize(pending []*Entry) int {
	pending = pending[:min(len(pending), maxBatch)]
	records := 0
	for n, e := range pending {
		if records += e.Records.count(); records > maxBatchRecords && n > 0 {
			return n
		}
	}
	return len(pending)
}

// complete removes the first n pending entries if err is nil, wakes waiters, and records whether
// the log fails. It reports whether more entries are to be stored immediately.
func (l *Log) complete(ctx context.Context, n int, err error) (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.failed
	l.failed = err
	if err != nil {
		for _, w := range l.waiting {
			w.done <- ErrUnavailable
		}
		l.waiting = nil
		if before == nil {
			slog.ErrorContext(ctx, "the audit log of a site cannot be written", "site", l.name, "err", err)
		}
		return true
	}
	if before != nil {
		slog.WarnContext(ctx, "the audit log of a site can be written again", "site", l.name, "lost", l.dropped)
		l.dropped = 0
	}
	l.pending = l.pending[n:]
	if len(l.pending) == 0 {
		l.pending = nil // frees the memory of stored entries
	}
	l.stored += int64(n)
	for len(l.waiting) > 0 && l.waiting[0].until <= l.stored {
		l.waiting[0].done <- nil
		l.waiting = l.waiting[1:]
	}
	// Other entries wait until run stores entries again, after at most soonDelay.
	return len(l.waiting) > 0 || len(l.pending) >= maxBatch || batchSize(l.pending) < len(l.pending)
}

// trimRegularly deletes entries beyond the retention until ctx ends. It needs a goroutine of its
// own, because run retries until entries are stored. If the storage is full, that succeeds only
// after old entries have been deleted.
func (l *Log) trimRegularly(ctx context.Context) {
	next := time.NewTimer(rand.N(firstTrim))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			next.Reset(trimInterval)
			l.trim(ctx)
		}
	}
}

// trim deletes entries beyond the retention. It logs a failure.
func (l *Log) trim(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, trimTimeout)
	defer cancel()
	if err := l.Storage().Trim(ctx, l.settings.Load().Retention); err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "old entries of an audit log were not deleted", "site", l.name, "err", err)
	}
}
