package site

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/paddock-health/paddock/controllers/site/provision"
)

// clusterWatch watches CloudNativePG's Clusters from the moment that their kind is known to
// exist: a watch from the beginning would wait for it, and the controller with it.
type clusterWatch struct {
	controller controller.Controller
	cache      cache.Cache
	handler    handler.EventHandler

	mu      sync.Mutex
	started bool
}

func newClusterWatch(mgr ctrl.Manager, c controller.Controller, h handler.EventHandler) (*clusterWatch, error) {
	clusters, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultFieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, provision.Name),
	})
	if err == nil {
		err = mgr.Add(clusters)
	}
	if err != nil {
		return nil, fmt.Errorf("make a cache of Clusters: %w", err)
	}
	return &clusterWatch{controller: c, cache: clusters, handler: h}, nil
}

// start is called when a Cluster is there, and so its kind.
func (w *clusterWatch) start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started {
		return nil
	}
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(provision.ClusterKind)
	if err := w.controller.Watch(source.Kind[client.Object](w.cache, cluster, w.handler)); err != nil {
		return fmt.Errorf("watch Clusters: %w", err)
	}
	w.started = true
	return nil
}
