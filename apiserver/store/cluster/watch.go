package cluster

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// Run updates the indexes by one watch of the Records in all namespaces. It also enforces the
// retention of sites, counts their webhook deliveries, and removes objects that interrupted writes left
// behind. It returns when ctx ends.
func (c *Cluster) Run(ctx context.Context) {
	go c.sweep(ctx)
	go c.backlog.Run(ctx)
	objects.RunReflector(ctx, objects.Records, c.listWatch(), &recordsv1.Record{}, &reflectorStore{cluster: c})
}

func (c *Cluster) listWatch() cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			var list recordsv1.RecordList
			err := c.client.List(ctx, objects.Records, options, &list)
			return &list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.client.Watch(ctx, objects.Records, options)
		},
	}
}

// reflectorStore applies watch events to the indexes. It implements cache.ReflectorStore.
type reflectorStore struct {
	cluster *Cluster
	ready   bool
}

func (f *reflectorStore) Add(obj any) error    { return f.apply(obj) }
func (f *reflectorStore) Update(obj any) error { return f.apply(obj) }

func (f *reflectorStore) apply(obj any) error {
	record, ok := obj.(*recordsv1.Record)
	if !ok {
		return fmt.Errorf("watch of records: unexpected object of type %T", obj)
	}
	record.ManagedFields = nil
	f.cluster.addUsage(f.cluster.indexOf(record).apply(record))
	return nil
}

func (f *reflectorStore) Delete(obj any) error {
	record, ok := obj.(*recordsv1.Record)
	if !ok {
		return fmt.Errorf("watch of records: unexpected object of type %T", obj)
	}
	version, _ := strconv.ParseInt(record.ResourceVersion, 10, 64) // 0 means unknown
	f.cluster.addUsage(f.cluster.indexOf(record).remove(record.Name, record.UID, keyOf(record), version, f.cluster.now()))
	return nil
}

// Replace implements cache.ReflectorStore. It applies a complete list, which the reflector reads at
// the start and after a gap in the watch.
func (f *reflectorStore) Replace(list []any, resourceVersion string) error {
	type objectName struct {
		site siteID
		name string
	}
	listed := make(map[objectName]types.UID, len(list))
	for _, obj := range list {
		record, ok := obj.(*recordsv1.Record)
		if !ok {
			return fmt.Errorf("list of records: unexpected object of type %T", obj)
		}
		listed[objectName{siteOf(record), record.Name}] = record.UID
		if err := f.apply(record); err != nil {
			return err
		}
	}
	version, _ := strconv.ParseInt(resourceVersion, 10, 64) // 0 means unknown
	for site, index := range f.cluster.indexes() {
		for _, obj := range index.olderThan(resourceVersion) {
			if listed[objectName{site, obj.Name}] != obj.UID {
				f.cluster.addUsage(index.remove(obj.Name, obj.UID, keyOf(obj), version, f.cluster.now()))
			}
		}
	}
	f.UpdateResourceVersion(resourceVersion)
	if !f.ready {
		f.ready = true
		f.cluster.listed.Store(version)
		close(f.cluster.synced)
	}
	return nil
}

// UpdateResourceVersion implements cache.ResourceVersionUpdater. When it is called, the indexes
// have all events up to the resourceVersion.
func (f *reflectorStore) UpdateResourceVersion(resourceVersion string) {
	if version, err := strconv.ParseInt(resourceVersion, 10, 64); err == nil {
		f.cluster.seen.Store(version)
	}
}

// Resync does nothing, because the indexes have no listeners.
func (f *reflectorStore) Resync() error { return nil }

func keyOf(record *recordsv1.Record) store.Key {
	return store.Key{Type: record.Spec.Type, ID: record.Spec.ID}
}

func siteOf(record *recordsv1.Record) siteID {
	return siteID{namespace: record.Namespace, key: record.Spec.SiteKey}
}

func (c *Cluster) indexOf(record *recordsv1.Record) *index {
	return c.index(siteOf(record))
}

// indexes returns the indexes of all sites.
func (c *Cluster) indexes() map[siteID]*index {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[siteID]*index, len(c.sites))
	for id, x := range c.sites {
		all[id] = x
	}
	return all
}

// olderThan returns the Records whose state in the index is not later than a resourceVersion.
func (x *index) olderThan(resourceVersion string) []*recordsv1.Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var older []*recordsv1.Record
	for _, e := range x.names {
		if !newer(e.obj.ResourceVersion, resourceVersion) {
			older = append(older, e.obj)
		}
	}
	return older
}
