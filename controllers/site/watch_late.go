package site

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// lateWatch watches objects of a kind that may be installed later. The controller could not start
// with a watch of a missing kind.
type lateWatch struct {
	kind       schema.GroupVersionKind
	controller controller.Controller
	cache      cache.Cache
	handler    handler.EventHandler

	mu      sync.Mutex
	started bool
}

// newLateWatch returns a watch of the objects of a kind that the options select. It is not started.
func newLateWatch(mgr ctrl.Manager, c controller.Controller, kind schema.GroupVersionKind, selected cache.Options, h handler.EventHandler) (*lateWatch, error) {
	objects, err := addCache(mgr, selected)
	if err != nil {
		return nil, fmt.Errorf("make a cache of %s objects: %w", kind.Kind, err)
	}
	return &lateWatch{kind: kind, controller: c, cache: objects, handler: h}, nil
}

// addCache returns a cache that the manager starts, in addition to its own.
func addCache(mgr ctrl.Manager, options cache.Options) (cache.Cache, error) {
	options.HTTPClient, options.Scheme, options.Mapper = mgr.GetHTTPClient(), mgr.GetScheme(), mgr.GetRESTMapper()
	objects, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return nil, err
	}
	return objects, mgr.Add(objects)
}

// start starts the watch. The kind must be installed.
func (w *lateWatch) start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started {
		return nil
	}
	if err := w.controller.Watch(source.Kind[client.Object](w.cache, newObject(w.kind), w.handler)); err != nil {
		return fmt.Errorf("watch %s objects: %w", w.kind.Kind, err)
	}
	w.started = true
	return nil
}
