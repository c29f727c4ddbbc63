package deliveries

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

const (
	// retryDelay is the pause after a failed request to the API server.
	retryDelay = 500 * time.Millisecond
	// closedDelay is the pause before the next attempt if Options.Open returned false for the site, or
	// if an attempt failed before anything was sent.
	closedDelay = 5 * time.Second
)

// queue relays the events of one namespace, and makes the attempts of its deliveries that are
// due.
type queue struct {
	*Runner
	namespace string
	lease     *heldLease

	// wakeSync wakes syncLoop, and wakeDispatch wakes dispatch. Both have a buffer of one.
	wakeSync, wakeDispatch chan struct{}
	attempts               sync.WaitGroup

	mu sync.Mutex
	// complete reports whether all deliveries from before the queue began are in entries. Before that,
	// no attempt is made, because an earlier event of the same subject might not be known yet.
	complete bool
	// expected reports whether Records may have events that were not relayed. These are the Records in
	// arrived, by name, or, if mustList is true, any Records. offered has the states of WebhookDeliveries,
	// by name, that syncLoop has not processed yet.
	expected, mustList bool
	arrived            map[string]*recordsv1.Record
	offered            map[string]offer
	// closed are the keys of the sites that were not open in the last pass of syncLoop, so that Records of
	// theirs are in arrived. Their deliveries wait, because they may be later than the events of these Records.
	closed map[string]bool
	// emptied has the resourceVersions at which the watch has reported, since the present pass of syncLoop
	// began, that Records have no events, by name of the Record.
	emptied map[string]string
	// listing reports whether a list is being read. Its later pages are as old as its first one.
	listing bool
	// entries are the pending deliveries by name. order has the same entries by sequence.
	entries map[string]*entry
	order   []*entry
	hooks   map[hookID]*hook
	// keys are the keys of the sites of which this queue has seen events or deliveries.
	keys map[string]bool
	// inFlight is the number of attempts in progress.
	inFlight int

	// heldRecords are the Records whose events have deliveries without WebhookDeliveries, by name.
	heldRecords map[string]*heldRecord
	// posted is the number of records of type Event whose events were relayed since the last trim.
	posted int

	// late is the context in which the results of attempts are stored. It outlives the context of run.
	late context.Context
	// removals limits the concurrent removals of events from Records and of WebhookDeliveries. The limit
	// is creators.
	removals chan struct{}
	// trims wakes trimLoop. It has a buffer of one.
	trims chan struct{}

	// relayed are the new deliveries that are not in entries yet. caughtUp are the keys of the sites
	// whose events from before the queue began have been relayed. unchecked are the WebhookDeliveries, by name of
	// the Record, that relayRecord created before it failed: their events may have been erased before. Only
	// syncLoop and its goroutines use these fields.
	relayed   []*entry
	caughtUp  map[string]bool
	unchecked map[string][]*entry
}

// offer is a state of a WebhookDelivery from a watch or a list.
type offer struct {
	resourceVersion string
	summary         summary
}

// entry is a pending delivery.
type entry struct {
	name     string
	hook     *hook
	subject  string
	sequence int64
	// next is when the next attempt is due.
	next time.Time
	// resourceVersion is that of the newest known state of the WebhookDelivery.
	resourceVersion string
	// inFlight reports whether an attempt is in progress.
	inFlight bool
	// done reports whether an attempt has succeeded. The WebhookDelivery is then about to be deleted.
	done bool
	// object is the WebhookDelivery if this queue has created or read it and has made no attempt since,
	// else nil. If object has no resourceVersion, it is the same as first.
	object *recordsv1.WebhookDelivery

	// claim is set until the delivery is in the log or has a WebhookDelivery.
	claim *claim
	// first is the WebhookDelivery that persist creates if the first attempts take too long. It has no
	// envelope, which is in the field envelope. first and envelope are nil if relayRecord or accept made
	// the entry. They do not change.
	first    *recordsv1.WebhookDelivery
	envelope []byte
	// creation guards meta, the metadata of the WebhookDelivery that ensureObject created. meta is nil if
	// ensureObject has created none, or if the WebhookDelivery may have changed since.
	creation sync.Mutex
	meta     *metav1.ObjectMeta
}

func newQueue(r *Runner, namespace string, lease *heldLease) *queue {
	return &queue{
		Runner: r, namespace: namespace, lease: lease, wakeSync: make(chan struct{}, 1), wakeDispatch: make(chan struct{}, 1),
		trims: make(chan struct{}, 1), removals: make(chan struct{}, creators), heldRecords: map[string]*heldRecord{}, unchecked: map[string][]*entry{}, caughtUp: map[string]bool{}, closed: map[string]bool{}, emptied: map[string]string{},
		// The replica that had this shard before may have relayed a part of the events. The rest must
		// be relayed before any delivery is sent.
		expected: true, mustList: true, arrived: map[string]*recordsv1.Record{}, offered: map[string]offer{}, entries: map[string]*entry{}, hooks: map[hookID]*hook{}, keys: map[string]bool{},
	}
}

// run relays events and makes attempts until ctx ends. It returns when all attempts have ended.
func (q *queue) run(ctx context.Context) {
	late, cancel := withStoreGrace(ctx)
	defer cancel()
	q.late = late
	var loops sync.WaitGroup
	loops.Go(func() { q.syncLoop(ctx) })
	loops.Go(func() { q.dispatch(ctx, late) })
	loops.Go(func() { q.persistOverdue(ctx) })
	loops.Go(func() { q.trimLoop(ctx) })
	loops.Wait()
	q.attempts.Wait()
}

// storeGrace is how long after the end of its context a queue may store the results of attempts. With
// the default of Options.LeaseDuration, the Lease of its shard is valid for longer, so that no other
// replica has the shard yet.
const storeGrace = 3 * time.Second

// withStoreGrace returns a context that ends storeGrace after ctx.
func withStoreGrace(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(storeGrace, cancel) })
	return late, func() {
		stop()
		cancel()
	}
}

func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// expectList makes syncLoop list the Records of the namespace and relay their events.
func (q *queue) expectList() {
	q.mu.Lock()
	q.expected, q.mustList = true, true
	q.mu.Unlock()
	signal(q.wakeSync)
}

// offer passes a state of a WebhookDelivery to syncLoop. It ignores states that are known already.
func (q *queue) offer(name, resourceVersion string, s summary) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keys[s.SiteKey] = true
	known := q.entries[name]
	if known == nil && s.Status != recordsv1.DeliveryPending || known != nil && known.resourceVersion == resourceVersion {
		return
	}
	q.offered[name] = offer{resourceVersion, s}
	signal(q.wakeSync)
}

// shortestPause and longestPause limit the pause after each pass of syncLoop, which is as long as the
// pass. Without the pause, each pass would relay few events, and passes that list Records would read
// held events again and again.
const (
	shortestPause = 50 * time.Millisecond
	longestPause  = 500 * time.Millisecond
)

// syncLoop relays events, and then accepts the offered deliveries, until ctx ends. The order
// matters: a delivery must not be sent before the deliveries of earlier events of its subject
// exist.
func (q *queue) syncLoop(ctx context.Context) {
	signal(q.wakeSync)
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.wakeSync:
		}
		began := time.Now()
		if err := q.sync(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "cannot create deliveries of events; the server will retry", "namespace", q.namespace, "error", err)
			q.sleep(ctx, retryDelay)
			q.expectList()
		}
		q.sleep(ctx, min(max(time.Since(began), shortestPause), longestPause))
	}
}

func (q *queue) sync(ctx context.Context) error {
	q.mu.Lock()
	expected := q.expected
	q.expected = false
	q.mu.Unlock()
	if expected {
		if err := q.relay(ctx); err != nil {
			return err
		}
	}
	q.mu.Lock()
	complete := q.complete
	q.mu.Unlock()
	if !complete {
		if err := q.eachMetadata(ctx, objects.Delivery, q.namespace, "", deliveryFeed{q.Runner}.Add); err != nil {
			return err
		}
	}
	q.mu.Lock()
	offered := q.offered
	q.offered = map[string]offer{}
	q.mu.Unlock()
	for name, o := range offered {
		if err := q.accept(ctx, name, o); err != nil {
			q.mu.Lock()
			for name, o := range offered {
				if _, newer := q.offered[name]; !newer {
					q.offered[name] = o
				}
			}
			q.mu.Unlock()
			return err
		}
	}
	q.mu.Lock()
	q.complete = true
	q.mu.Unlock()
	signal(q.wakeDispatch)
	return nil
}

// accept updates the entries by an offered state of a WebhookDelivery.
func (q *queue) accept(ctx context.Context, name string, o offer) error {
	h, err := q.hook(ctx, hookID{o.summary.SiteKey, o.summary.Webhook})
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	known := q.entries[name]
	pending := o.summary.Status == recordsv1.DeliveryPending
	switch {
	case known == nil && pending:
		q.insert(&entry{
			name: name, hook: h, subject: o.summary.Subject, sequence: o.summary.Sequence,
			next: time.UnixMilli(o.summary.Next), resourceVersion: o.resourceVersion,
		})
	case known == nil || known.inFlight || known.done || !newer(o.resourceVersion, known.resourceVersion):
		// An attempt in progress finds the change of the WebhookDelivery when it stores its result.
	case pending:
		known.next, known.resourceVersion, known.object = time.UnixMilli(o.summary.Next), o.resourceVersion, nil
	default:
		q.remove(known)
	}
	signal(q.wakeDispatch)
	return nil
}

// forgetObject makes the next attempt of a delivery read its WebhookDelivery, which was deleted.
func (q *queue) forgetObject(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries[name]; e != nil {
		e.forgetObject()
	}
}

// forgetObjects makes the next attempt of each delivery read its WebhookDelivery.
func (q *queue) forgetObjects() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.entries {
		e.forgetObject()
	}
}

// forgetObject makes due read the WebhookDelivery, unless it is not stored yet. The caller holds mu.
func (e *entry) forgetObject() {
	if e.claim == nil {
		e.object = nil
	}
}

// insert adds an entry to entries and order. The caller holds mu.
func (q *queue) insert(e *entry) {
	q.entries[e.name] = e
	at, _ := slices.BinarySearchFunc(q.order, e, compareEntries)
	q.order = slices.Insert(q.order, at, e)
}

// remove removes an entry from entries and order. The caller holds mu.
func (q *queue) remove(e *entry) {
	if q.entries[e.name] != e {
		return
	}
	delete(q.entries, e.name)
	if at, found := slices.BinarySearchFunc(q.order, e, compareEntries); found {
		q.order = slices.Delete(q.order, at, at+1)
	}
}

func compareEntries(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.name, b.name))
}

// sleep waits for d, or until ctx ends.
func (q *queue) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
