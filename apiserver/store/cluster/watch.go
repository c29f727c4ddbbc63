package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
)

// Run feeds the indexes from one watch over the Records of all namespaces, and
// finishes what other processes left unfinished. It returns when ctx ends.
func (c *Cluster) Run(ctx context.Context) {
	reflector := cache.NewReflectorWithOptions(c.listWatch(), &recordsv1.Record{}, &feed{cluster: c}, cache.ReflectorOptions{Name: "records"})
	go c.sweep(ctx)
	reflector.RunWithContext(ctx)
}

func (c *Cluster) listWatch() cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			var list recordsv1.RecordList
			err := c.client.list(ctx, recordsResource, options, &list)
			return &list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return c.client.rest.Get().Resource(recordsResource).VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
		},
	}
}

// feed takes what the watch tells into the indexes (cache.ReflectorStore).
type feed struct {
	cluster *Cluster
	ready   bool
}

func (f *feed) Add(obj any) error    { return f.apply(obj) }
func (f *feed) Update(obj any) error { return f.apply(obj) }

func (f *feed) apply(obj any) error {
	record, ok := obj.(*recordsv1.Record)
	if !ok {
		return fmt.Errorf("watch of records: got a %T", obj)
	}
	record.ManagedFields = nil
	f.cluster.count(f.cluster.indexOf(record).apply(record))
	return nil
}

func (f *feed) Delete(obj any) error {
	record, ok := obj.(*recordsv1.Record)
	if !ok {
		return fmt.Errorf("watch of records: got a %T", obj)
	}
	f.cluster.count(f.cluster.indexOf(record).remove(record.Name, record.UID, f.cluster.now()))
	return nil
}

// Replace takes a whole list in: at the start, and after a gap in the watch.
func (f *feed) Replace(list []any, resourceVersion string) error {
	type objectName struct {
		site siteID
		name string
	}
	listed := make(map[objectName]types.UID, len(list))
	for _, obj := range list {
		record, ok := obj.(*recordsv1.Record)
		if !ok {
			return fmt.Errorf("list of records: got a %T", obj)
		}
		listed[objectName{siteOf(record), record.Name}] = record.UID
		if err := f.apply(record); err != nil {
			return err
		}
	}
	for site, index := range f.cluster.indexes() {
		for name, uid := range index.olderThan(resourceVersion) {
			if listed[objectName{site, name}] != uid {
				f.cluster.count(index.remove(name, uid, f.cluster.now()))
			}
		}
	}
	if !f.ready {
		f.ready = true
		close(f.cluster.synced)
	}
	return nil
}

// Resync has nothing to do: the indexes have no listeners.
func (f *feed) Resync() error { return nil }

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

// olderThan lists the Records whose known state is not later than a resourceVersion.
func (x *index) olderThan(resourceVersion string) map[string]types.UID {
	x.mu.RLock()
	defer x.mu.RUnlock()
	older := map[string]types.UID{}
	for name, e := range x.names {
		if !newer(e.obj.ResourceVersion, resourceVersion) {
			older[name] = e.obj.UID
		}
	}
	return older
}
