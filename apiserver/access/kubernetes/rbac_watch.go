package kubernetes

import (
	"context"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// rbacResources are the resources on which the rights of RBAC depend.
var rbacResources = []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}

// maxChangedNamespaces limits the namespaces of which rbacWatch knows the last change. At the limit
// all namespaces count as changed.
const maxChangedNamespaces = 4096

// rbacWatch records when the objects of RBAC last changed. It reads their metadata only, and keeps
// no objects. It is safe for concurrent use.
type rbacWatch struct {
	client metadata.Interface
	now    func() time.Time

	mu sync.Mutex
	// unwatched maps each resource whose changes may be unknown to the time at which its watch
	// failed. The time is zero for a resource that has not been listed yet.
	unwatched map[string]time.Time
	// everywhere is the time of the last change that counts for all namespaces: a change of an
	// object without a namespace, or a list, before which changes may have been missed. namespaces
	// maps each namespace to the time of the last change of an object in it. It has no times before
	// everywhere.
	everywhere time.Time
	namespaces map[string]time.Time
}

func newRBACWatch(client metadata.Interface, now func() time.Time) *rbacWatch {
	w := &rbacWatch{client: client, now: now, unwatched: map[string]time.Time{}, namespaces: map[string]time.Time{}}
	for _, resource := range rbacResources {
		w.unwatched[resource] = time.Time{}
	}
	return w
}

// Run watches the objects of RBAC. It returns when ctx ends.
func (w *rbacWatch) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, resource := range rbacResources {
		group.Go(func() { w.watch(ctx, resource) })
	}
	group.Wait()
}

func (w *rbacWatch) watch(ctx context.Context, resource string) {
	of := w.client.Resource(rbacv1.SchemeGroupVersion.WithResource(resource))
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			w.setWatched(resource, false)
			return of.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := of.Watch(ctx, options)
			listed := options.SendInitialEvents == nil // otherwise the watch begins with a list
			w.setWatched(resource, err == nil && listed)
			return events, err
		},
	}
	cache.NewReflectorWithOptions(listWatch, &metav1.PartialObjectMetadata{}, rbacResource{w, resource}, cache.ReflectorOptions{Name: resource}).RunWithContext(ctx)
}

// last returns the time of the last known change of an object of RBAC that can have an effect in a
// namespace. isWatched is false if the watch of a resource failed answerTTL ago or earlier, or has
// not listed its objects yet. A watch that failed later counts as working, so that cached rights
// remain valid for that time while kube-apiserver is unavailable.
func (w *rbacWatch) last(namespace string) (changed time.Time, isWatched bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed = w.namespaces[namespace]
	if changed.Before(w.everywhere) {
		changed = w.everywhere
	}
	old := w.now().Add(-answerTTL)
	for _, since := range w.unwatched {
		if !since.After(old) {
			return changed, false
		}
	}
	return changed, true
}

func (w *rbacWatch) setWatched(resource string, works bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if works {
		delete(w.unwatched, resource)
	} else if _, known := w.unwatched[resource]; !known {
		w.unwatched[resource] = w.now()
	}
}

// changed notes a change of an object.
func (w *rbacWatch) changed(obj any) error {
	object, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Errorf("watch of RBAC: unexpected object of type %T", obj)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if namespace := object.GetNamespace(); namespace != "" && len(w.namespaces) < maxChangedNamespaces {
		w.namespaces[namespace] = w.now()
		return nil
	}
	w.changedEverywhere()
	return nil
}

// changedEverywhere notes a change with an effect in all namespaces. The caller holds mu.
func (w *rbacWatch) changedEverywhere() {
	w.everywhere = w.now()
	clear(w.namespaces)
}

// rbacResource implements cache.ReflectorStore for the objects of one resource.
type rbacResource struct {
	*rbacWatch
	name string
}

// Add implements cache.ReflectorStore.
func (r rbacResource) Add(obj any) error { return r.changed(obj) }

// Update implements cache.ReflectorStore.
func (r rbacResource) Update(obj any) error { return r.changed(obj) }

// Delete implements cache.ReflectorStore.
func (r rbacResource) Delete(obj any) error { return r.changed(obj) }

// Replace implements cache.ReflectorStore. Changes before the list may have been missed.
func (r rbacResource) Replace([]any, string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changedEverywhere()
	delete(r.unwatched, r.name)
	return nil
}

// Resync implements cache.ReflectorStore.
func (r rbacResource) Resync() error { return nil }
