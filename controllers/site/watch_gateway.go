package site

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/paddock-health/paddock/controllers/site/exposure"
)

// gatewayAPI watches the kinds of the Gateway API, which may not be installed.
type gatewayAPI struct {
	mapper         meta.RESTMapper
	routes, grants *lateWatch

	mu            sync.Mutex
	looked, known bool
}

func (r *Reconciler) newGatewayAPI(mgr ctrl.Manager, c controller.Controller) (*gatewayAPI, error) {
	g := &gatewayAPI{mapper: mgr.GetRESTMapper()}
	var err error
	g.routes, err = newLateWatch(mgr, c, exposure.RouteKind, cache.Options{
		DefaultFieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, exposure.RouteName),
	}, handler.EnqueueRequestsFromMapFunc(r.neighbours))
	if err != nil {
		return nil, err
	}
	g.grants, err = newLateWatch(mgr, c, exposure.GrantKind, cache.Options{
		DefaultNamespaces: map[string]cache.Config{r.Namespace: {}},
	}, handler.EnqueueRequestsFromMapFunc(siteOfAnnotation))
	return g, err
}

// installed reports whether the kinds are installed. If they are, it starts watches of their
// objects. It caches the result, because most Sites need none of the kinds. If again is true, it
// checks again whether kinds that were missing are installed.
func (g *gatewayAPI) installed(again bool) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known || g.looked && !again {
		return g.known, nil
	}
	for _, watch := range []*lateWatch{g.routes, g.grants} {
		switch _, err := g.mapper.RESTMapping(watch.kind.GroupKind(), watch.kind.Version); {
		case meta.IsNoMatchError(err):
			g.looked = true
			return false, nil
		case err != nil:
			return false, fmt.Errorf("look for the kind %s: %w", watch.kind.Kind, err)
		}
	}
	for _, watch := range []*lateWatch{g.routes, g.grants} {
		if err := watch.start(); err != nil {
			return false, err
		}
	}
	g.known = true
	return true, nil
}
