package deliveries

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

// eventsSelector is the field selector of Records that have events. For a list, kube-apiserver tests the
// selector on each Record of the namespaces, so lists are rare. For a watch, it tests only Records that
// change.
const eventsSelector = "spec.hasEvents=true"

// watchEvents watches the Records with events in all namespaces until ctx ends, and passes them to the
// queues.
func (r *Runner) watchEvents(ctx context.Context) {
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = eventsSelector
			var list recordsv1.RecordList
			err := r.client.List(ctx, objects.Records, options, &list)
			return &list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = eventsSelector
			return r.client.Watch(ctx, objects.Records, options)
		},
	}
	objects.RunReflector(ctx, "records with events", listWatch, &recordsv1.Record{}, recordFeed{r})
}

// recordFeed passes Records with events to the queue of their namespace. It implements
// cache.ReflectorStore.
type recordFeed struct{ *Runner }

// Add implements cache.ReflectorStore.
func (f recordFeed) Add(obj any) error {
	record, err := watched(obj)
	if err != nil {
		return err
	}
	if q := f.queue(record.Namespace); q != nil {
		q.arrive(record)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (f recordFeed) Update(obj any) error { return f.Add(obj) }

// Delete implements cache.ReflectorStore. The Record was deleted, or has no events left.
func (f recordFeed) Delete(obj any) error {
	record, err := watched(obj)
	if err != nil {
		return err
	}
	for _, q := range f.running(record.Namespace) {
		q.noteEmpty(record.Name, record.ResourceVersion)
	}
	return nil
}

// Replace implements cache.ReflectorStore. resourceVersion is that of the list.
func (f recordFeed) Replace(list []any, resourceVersion string) error {
	there := map[string]map[string]*recordsv1.Record{}
	for _, obj := range list {
		record, err := watched(obj)
		if err != nil {
			return err
		}
		if there[record.Namespace] == nil {
			there[record.Namespace] = map[string]*recordsv1.Record{}
			f.queue(record.Namespace) // a new queue lists the Records itself
		}
		there[record.Namespace][record.Name] = record
	}
	for _, q := range f.running(metav1.NamespaceAll) {
		q.replace(there[q.namespace], resourceVersion)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (f recordFeed) Resync() error { return nil }

func watched(obj any) (*recordsv1.Record, error) {
	record, ok := obj.(*recordsv1.Record)
	if !ok {
		return nil, fmt.Errorf("watch of %s: unexpected object of type %T", objects.Records, obj)
	}
	return record, nil
}

// running returns the running queue of a namespace, or all running queues for metav1.NamespaceAll.
func (r *Runner) running(namespace string) []*queue {
	r.mu.Lock()
	defer r.mu.Unlock()
	var queues []*queue
	for _, s := range r.owned {
		for name, q := range s.queues {
			if namespace == metav1.NamespaceAll || name == namespace {
				queues = append(queues, q)
			}
		}
	}
	return queues
}

// arrive passes a state of a Record with events from the watch to syncLoop. The watch reports states in the
// order of their resourceVersions. So syncLoop gets an event together with, or after, all earlier events.
func (q *queue) arrive(record *recordsv1.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keepLatest(record)
	q.expected = true
	signal(q.wakeSync)
}

// keepLatest keeps a state of a Record for the next pass of syncLoop, unless a later one has arrived. The
// caller holds mu.
func (q *queue) keepLatest(record *recordsv1.Record) {
	if known := q.arrived[record.Name]; known == nil || !newer(known.ResourceVersion, record.ResourceVersion) {
		q.arrived[record.Name] = record
	}
}

// replace passes the Records with events of a list to syncLoop, all at once: a list is not in the order of
// resourceVersions. For the other Records, it is noteEmpty.
func (q *queue) replace(there map[string]*recordsv1.Record, resourceVersion string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for name := range q.arrived {
		if there[name] == nil {
			q.noteEmptyLocked(name, resourceVersion)
		}
	}
	for name := range q.heldRecords {
		if there[name] == nil {
			q.noteEmptyLocked(name, resourceVersion)
		}
	}
	if len(there) > 0 {
		for _, record := range there {
			q.keepLatest(record)
		}
		q.expected = true
		signal(q.wakeSync)
	}
}

// noteEmpty notes that a Record has been without events since a resourceVersion.
func (q *queue) noteEmpty(name, resourceVersion string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noteEmptyLocked(name, resourceVersion)
}

// noteEmptyLocked is noteEmpty for callers that hold mu.
func (q *queue) noteEmptyLocked(name, resourceVersion string) {
	q.emptied[name] = resourceVersion
	if record := q.arrived[name]; record != nil && newer(resourceVersion, record.ResourceVersion) {
		delete(q.arrived, name)
	}
	h := q.heldRecords[name]
	if h == nil || !newer(resourceVersion, h.record.ResourceVersion) {
		return
	}
	h.reportedEmpty = true
	q.forgetEmpty(name, h)
}

// forgetEmpty forgets a heldRecord if its events were removed from the Record, if the watch has reported a
// Record without events, and if no list is being read. Before that, a state from before the removal may
// still arrive. Without the heldRecord, syncLoop would make the deliveries of that state again. The caller
// holds mu.
func (q *queue) forgetEmpty(name string, h *heldRecord) {
	if h.reportedEmpty && h.removed && !q.listing && q.heldRecords[name] == h {
		delete(q.heldRecords, name)
	}
}

// endListing notes that a list has been read.
func (q *queue) endListing() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.listing = false
	for name, h := range q.heldRecords {
		q.forgetEmpty(name, h)
	}
}
