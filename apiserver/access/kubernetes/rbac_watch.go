package kubernetes

import (
	"context"
	"fmt"
	"maps"
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

// rbacWatch knows when the objects of RBAC last changed. It reads their metadata only, and keeps no
// objects. It is safe for concurrent use.
type rbacWatch struct {
	client metadata.Interface
	now    func() time.Time

	mu sync.Mutex
	// watched has the resources whose changes are all known.
	watched map[string]bool
	// everywhere is the time of the last change of an object without a namespace, or after which
	// changes may have been missed. namespaces has the times of the last changes in namespaces, without
	// those before everywhere or longer ago than watchedRightsTTL.
	everywhere time.Time
	namespaces map[string]time.Time
}

func newRBACWatch(client metadata.Interface, now func() time.Time) *rbacWatch {
	return &rbacWatch{client: client, now: now, watched: map[string]bool{}, namespaces: map[string]time.Time{}}
}

// Run watches until ctx ends.
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

// last returns when an object of RBAC changed that can have an effect in a namespace, as far as is
// known. isWatched reports whether all changes are known.
func (w *rbacWatch) last(namespace string) (changed time.Time, isWatched bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed = w.namespaces[namespace]
	if changed.Before(w.everywhere) {
		changed = w.everywhere
	}
	return changed, len(w.watched) == len(rbacResources)
}

func (w *rbacWatch) setWatched(resource string, works bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if works {
		w.watched[resource] = true
	} else {
		delete(w.watched, resource)
	}
}

func (w *rbacWatch) changedEverywhere() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.everywhere = w.now()
	clear(w.namespaces)
}

// changed notes a change of an object.
func (w *rbacWatch) changed(obj any) error {
	object, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Errorf("watch of RBAC: unexpected object of type %T", obj)
	}
	w.mu.Lock()
	if len(w.namespaces) >= maxChangedNamespaces {
		old := w.now().Add(-watchedRightsTTL)
		maps.DeleteFunc(w.namespaces, func(_ string, at time.Time) bool { return at.Before(old) })
	}
	isLocal := object.GetNamespace() != "" && len(w.namespaces) < maxChangedNamespaces
	if isLocal {
		w.namespaces[object.GetNamespace()] = w.now()
	}
	w.mu.Unlock()
	if !isLocal {
		w.changedEverywhere()
	}
	return nil
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
	r.changedEverywhere()
	r.setWatched(r.name, true)
	return nil
}

// Resync implements cache.ReflectorStore.
func (r rbacResource) Resync() error { return nil }
