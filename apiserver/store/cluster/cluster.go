// Package cluster keeps records as objects of the cluster, backed by etcd: one
// Record per record, one RecordHistory beside it, one RecordClaim per claimed
// line. Reads by id go to the API server; searches are answered from an index in
// memory that a watch and the replica's own writes feed. See
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
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Options tune the engine. The zero value of a field means its default.
type Options struct {
	// MaxRecords and MaxBytes bound what all sites together may store. Defaults:
	// 20,000 records and 512 MiB.
	MaxRecords, MaxBytes int64
	// Extract finds the searchable values of records. Default: they have none.
	Extract store.Extract
	// QueryTimeout bounds how long a search may keep a site's writers waiting.
	// Default: two seconds.
	QueryTimeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// AfterStep, if not nil, is called after each step of a write. Crash tests end
	// the process in it.
	AfterStep func(step string)
}

// Cluster is the engine. Its sites share one watch and one client.
type Cluster struct {
	client    *client
	limits    Limits
	extract   store.Extract
	now       func() time.Time
	afterStep func(string)

	queryTimeout time.Duration

	synced chan struct{}

	mu    sync.Mutex
	sites map[siteID]*index

	records, bytes atomic.Int64
}

// siteID tells the sites of the engine apart: the key of the data and the
// namespace it must be in.
type siteID struct {
	namespace, key string
}

// New makes the engine. Run must be called for it to serve.
func New(config *rest.Config, options Options) (*Cluster, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		client:    client,
		limits:    Limits{MaxRecords: 20000, MaxBytes: 512 << 20},
		extract:   options.Extract,
		now:       options.Now,
		afterStep: options.AfterStep,
		synced:    make(chan struct{}),

		queryTimeout: cmp.Or(options.QueryTimeout, 2*time.Second),

		sites: map[siteID]*index{},
	}
	if options.MaxRecords > 0 {
		c.limits.MaxRecords = options.MaxRecords
	}
	if options.MaxBytes > 0 {
		c.limits.MaxBytes = options.MaxBytes
	}
	if c.extract == nil {
		c.extract = func(string, []byte) []store.Entry { return nil }
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.afterStep == nil {
		c.afterStep = func(string) {}
	}
	return c, nil
}

// Synced is closed when the index holds all records that existed at the start.
func (c *Cluster) Synced() <-chan struct{} { return c.synced }

// Indexed is how many records of all sites the index holds.
func (c *Cluster) Indexed() int64 { return c.records.Load() }

// Stats tells how much all sites together store and may store.
func (c *Cluster) Stats() store.Stats {
	used := c.usage()
	return store.Stats{Records: used.records, MaxRecords: c.limits.MaxRecords, Bytes: used.bytes, MaxBytes: c.limits.MaxBytes}
}

// Open returns the store of a site: the records in namespace whose siteKey is key.
func (c *Cluster) Open(namespace, key string, limits Limits) *Site {
	return &Site{engine: c, namespace: namespace, key: key, limits: limits, index: c.index(siteID{namespace, key})}
}

// index returns the index of a site, making it when it is new.
func (c *Cluster) index(id siteID) *index {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.sites[id]
	if x == nil {
		x = newIndex(c.extract)
		c.sites[id] = x
	}
	return x
}

// count adds a change to what all sites store.
func (c *Cluster) count(change usage) {
	c.records.Add(change.records)
	c.bytes.Add(change.bytes)
}

func (c *Cluster) usage() usage {
	return usage{records: c.records.Load(), bytes: c.bytes.Load()}
}

// clock is the time of a write: UTC, in milliseconds.
func (c *Cluster) clock() time.Time {
	return c.now().UTC().Truncate(time.Millisecond)
}

// isSynced reports whether the index is built.
func (c *Cluster) isSynced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

// newID makes a uid, a lineage or a nonce.
func newID() string { return uuid.NewString() }

// newer reports whether resourceVersion a is later than b (KEP-5504: they are
// comparable within a resource).
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// Site is the store of one site.
type Site struct {
	engine    *Cluster
	namespace string
	key       string
	limits    Limits
	index     *index
}

var _ store.Store = (*Site)(nil)

// Atomic implements store.Store: the API server writes one object at a time.
func (s *Site) Atomic() bool { return false }

// Stats implements store.Store.
func (s *Site) Stats() store.Stats {
	used := s.index.usage()
	return store.Stats{Records: used.records, MaxRecords: s.limits.MaxRecords, Bytes: used.bytes, MaxBytes: s.limits.MaxBytes}
}

// errForeign says that an object of this name is another site's data.
var errForeign = errors.New("the object belongs to other data than this site's")

// fetch reads the Record object as it is now; nil when there is none.
func (s *Site) fetch(ctx context.Context, name string) (*recordsv1.Record, error) {
	var obj recordsv1.Record
	err := s.engine.client.get(ctx, recordsResource, s.namespace, name, &obj)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError("read record "+name, err)
	}
	if obj.Spec.SiteKey != s.key {
		return nil, storeError("read record "+name, errForeign)
	}
	return &obj, nil
}
