// Package cluster is the storage engine that keeps records as Kubernetes objects, and so in etcd.
// It makes a Record for each record, a RecordHistory for its superseded versions, and a RecordClaim
// for each claimed line. Reads by id go to kube-apiserver. Searches use an index in memory, which
// is updated by a watch and by the writes of the replica itself. See
// docs/decisions/0003-etcd-backed-records.md.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/batcher"
	"github.com/paddock-health/paddock/apiserver/store/cluster/deliveries"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// Options are the settings of a Cluster.
type Options struct {
	// MaxRecords and MaxBytes limit the number and the size in bytes of the records of all sites
	// together. At a limit, writes fail with *store.LimitError. At MaxBytes, a write first removes old
	// versions of its site, as with Limits.MaxBytes. Defaults: 20,000 records and 512 MiB.
	MaxRecords, MaxBytes int64
	// Extractor finds the searchable values and labels of a record. If it is nil, records have none.
	Extractor store.Extractor
	// QueryTimeout limits how long a search may hold the read lock of a site's index. Writers of the
	// site wait for that lock. At the limit the search fails with store.ErrQueryTimeout. Default: 2 s.
	QueryTimeout time.Duration
	// Now is the clock for the times of writes. If it is nil, time.Now is used.
	Now func() time.Time
	// AfterStep, if not nil, is called after each step of a write with the name of the step. Tests of
	// crashes end the process in it.
	AfterStep func(step string)
}

// Cluster is the storage engine for sites with etcd-backed storage. All its sites share one watch and
// one client. It is safe for concurrent use.
type Cluster struct {
	client    *objects.Client
	limits    Limits
	extractor store.Extractor
	now       func() time.Time
	afterStep func(string)

	queryTimeout time.Duration

	synced chan struct{}

	mu    sync.Mutex
	sites map[siteID]*index

	records, bytes atomic.Int64
	// retainedTombstones and retainedVersions count what retention has removed.
	retainedTombstones, retainedVersions atomic.Int64
	// seen is the resourceVersion that the watch of Records has reached. It is 0 before the first
	// list.
	seen atomic.Int64
	// listed is the resourceVersion of the first list of Records.
	listed  atomic.Int64
	backlog *deliveries.Backlog
}

// siteID identifies a site by its namespace and the key of its data. Records with the key in
// another namespace do not belong to the site.
type siteID struct {
	namespace, key string
}

// New returns a Cluster. Reads by id work at once. Until Run has filled the index, writes,
// searches, dumps, restores, histories of several records and histories with Access fail with
// store.ErrNotReady. So do Mark, ChangedSince and Count of store.ChangeLog.
func New(config *rest.Config, options Options) (*Cluster, error) {
	client, err := objects.New(config)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		client:    client,
		limits:    Limits{MaxRecords: 20000, MaxBytes: 512 << 20},
		extractor: options.Extractor,
		now:       options.Now,
		afterStep: options.AfterStep,
		synced:    make(chan struct{}),

		queryTimeout: cmp.Or(options.QueryTimeout, 2*time.Second),

		sites: map[siteID]*index{},
	}
	if c.backlog, err = deliveries.NewBacklog(config); err != nil {
		return nil, err
	}
	if options.MaxRecords > 0 {
		c.limits.MaxRecords = options.MaxRecords
	}
	if options.MaxBytes > 0 {
		c.limits.MaxBytes = options.MaxBytes
	}
	if c.extractor == nil {
		c.extractor = store.NoExtractor
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.afterStep == nil {
		c.afterStep = func(string) {}
	}
	return c, nil
}

// Synced returns a channel that is closed when the index has all records that existed when Run was
// called.
func (c *Cluster) Synced() <-chan struct{} { return c.synced }

// Indexed returns the number of live records of all sites in the search indexes, without jobs and
// posted events.
func (c *Cluster) Indexed() int64 { return c.records.Load() }

// Stats returns what all sites together store, and the limits for all sites together.
func (c *Cluster) Stats() store.Stats {
	used := c.usage()
	return store.Stats{Records: used.records, MaxRecords: c.limits.MaxRecords, Bytes: used.bytes, MaxBytes: c.limits.MaxBytes}
}

// Open returns the store of a site: the records in the namespace whose siteKey is key. If
// limits.MaxPending is 0, DefaultLimits.MaxPending applies. The other limits have no defaults.
func (c *Cluster) Open(namespace, key string, limits Limits) *Store {
	limits.MaxPending = cmp.Or(limits.MaxPending, DefaultLimits.MaxPending)
	s := &Store{engine: c, namespace: namespace, key: key, limits: limits, index: c.index(siteID{namespace, key})}
	s.erasures = batcher.New(erasureTimeout, s.eraseDeliveries)
	return s
}

// index returns the index of a site. It makes one for a new site.
func (c *Cluster) index(id siteID) *index {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.sites[id]
	if x == nil {
		x = newIndex(c.extractor)
		c.sites[id] = x
	}
	return x
}

// addUsage adds a change of one site to the usage of all sites.
func (c *Cluster) addUsage(change usage) {
	c.records.Add(change.records)
	c.bytes.Add(change.bytes)
}

func (c *Cluster) usage() usage {
	return usage{records: c.records.Load(), bytes: c.bytes.Load()}
}

// clock returns the time in UTC, truncated to milliseconds.
func (c *Cluster) clock() time.Time {
	return c.now().UTC().Truncate(time.Millisecond)
}

func (c *Cluster) isSynced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

func newID() string { return uuid.NewString() }

// newer reports whether resourceVersion a is later than b. Resource versions of one resource are
// comparable (KEP-5504).
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// Store stores the records of one site as objects of the cluster. It implements store.Store,
// store.Archive, store.ChangeLog and store.Synchronizer. It is safe for concurrent use.
type Store struct {
	engine    *Cluster
	namespace string
	key       string
	limits    Limits
	index     *index
	// erasures batches the removals of deliveries.
	erasures *batcher.Batcher[*erasure]
	// admission, if not nil, is called before a write, and in each attempt of the write. If it returns
	// an error, the write fails with that error.
	admission func(context.Context) error
}

// Paused returns a store of the same records whose writes and restores fail with store.ErrMoving.
func (s *Store) Paused() *Store {
	return s.Admitted(func(context.Context) error { return store.ErrMoving })
}

// Admitted returns a store of the same records that calls check before each write and each restore.
// It calls check again after it has read the record to change. If check returns an error, the write
// or the restore fails with that error.
func (s *Store) Admitted(check func(context.Context) error) *Store {
	admitted := *s
	admitted.admission = check
	return &admitted
}

func (s *Store) admit(ctx context.Context) error {
	if s.admission == nil {
		return nil
	}
	return s.admission(ctx)
}

var _ store.Store = (*Store)(nil)

// Atomic implements store.Store. It returns false: kube-apiserver writes one object at a time.
func (s *Store) Atomic() bool { return false }

// Stats implements store.Store.
func (s *Store) Stats() store.Stats {
	if !s.engine.isSynced() {
		return store.Stats{MaxRecords: s.limits.MaxRecords, MaxBytes: s.limits.MaxBytes}
	}
	used := s.index.usage()
	return store.Stats{Records: used.records, MaxRecords: s.limits.MaxRecords, Bytes: used.bytes, MaxBytes: s.limits.MaxBytes, Counted: s.engine.clock()}
}

// errForeign means that an object has the name that an object of this site would have, but the
// siteKey of another site.
var errForeign = errors.New("the siteKey of the object is that of another site; remove the object from the namespace unless that site uses it")

// fetch reads a Record from the API server. It returns nil if there is none.
func (s *Store) fetch(ctx context.Context, name string) (*recordsv1.Record, error) {
	var obj recordsv1.Record
	err := s.engine.client.Get(ctx, objects.Records, s.namespace, name, &obj)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, objects.StoreError("read record "+name, err)
	}
	if obj.Spec.SiteKey != s.key {
		return nil, objects.StoreError("read record "+name, errForeign)
	}
	return &obj, nil
}
